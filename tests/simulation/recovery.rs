//! The second phase: faults end, and within a bounded number of rounds all that is owed is done.

use std::collections::BTreeMap;

use per_node::domain::handle::Handle;
use per_node::domain::holds::TargetState;
use per_node::domain::mount_table::TargetView;
use per_node::ports::cluster::Cluster;

use crate::faults;
use crate::invariants::Violation;
use crate::kubelet::VolumeState;
use crate::plugin::DRIVER_NAME;
use crate::simulation::Simulation;
use crate::world::ROUND;

/// Rounds until all is quiet, and once more after the process has started anew.
const ROUNDS: u32 = 14;
/// Steps after which a round that does not end by itself is a livelock.
const ROUND_STEPS_MAX: u32 = 4000;

impl Simulation {
    /// Ends all faults and waits for what is owed.
    pub fn recover(&mut self) -> Result<(), Violation> {
        self.no_call_waits_for_the_api_server()?;
        self.note(|| "faults end".to_owned());
        self.end_faults();
        for _ in 0..ROUNDS {
            self.round()?;
        }
        // What a lost write left on the disk alone, the next start settles.
        self.crash();
        for _ in 0..ROUNDS {
            self.round()?;
        }
        self.begin_step();
        self.everything_wanted_runs()?;
        self.nothing_is_left()?;
        self.copies_are_those_named_or_held()?;
        self.every_event_was_told()
    }

    /// Whatever of the API server hangs now, every call is answered: no lock is held across a request to it (C41).
    fn no_call_waits_for_the_api_server(&mut self) -> Result<(), Violation> {
        faults::end_on_node(&self.node);
        self.run_until_quiet()?;
        // A hang that was on its way when faults ended.
        self.node.gate().release_all();
        self.run_until_quiet()?;
        match self.kubelet.calls.keys().next() {
            Some(call) if self.plugin.as_ref().is_some_and(|plugin| plugin.is_serving()) => {
                Err(Violation(format!("call {call} waits for the API server")))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end_faults(&mut self) {
        faults::end(&self.node, &self.api);
        if let Some(home) = self.away.take() {
            self.crash();
            self.come_home(&home);
        }
        self.node.set_available_bytes(1 << 30);
        self.node.set_read_only(false);
        self.node.clear_undeletable();
        for name in self.node.copy_names() {
            if let Ok(handle) = Handle::parse(&name) {
                self.node.set_immutable(&handle, false);
            }
        }
        for pod in self.kubelet.pods.values() {
            self.node.set_busy(pod.target(), false);
        }
        self.node.clear_busy();
        self.settle_what_is_wanted();
    }

    /// Of pods that want one handle one stays, and none whose volume is gone and that never ran.
    fn settle_what_is_wanted(&mut self) {
        let mut stays: BTreeMap<Handle, usize> = BTreeMap::new();
        let volumes = self.api.volume_names();
        for (number, pod) in &self.kubelet.pods {
            let may_stay = pod.wanted && volumes.contains(&pod.volume);
            if may_stay && (pod.running || !stays.contains_key(&pod.handle)) {
                stays.insert(pod.handle.clone(), *number);
            }
        }
        let numbers: Vec<usize> = self.kubelet.pods.keys().copied().collect();
        for number in numbers {
            if !stays.values().any(|&stays| stays == number) {
                self.end_pod(number);
            }
        }
        for at in self.node.store_mounts() {
            if at.mount_point.to_string_lossy().contains("volume-subpaths") {
                self.node.unmount(at.mount_point);
            }
        }
    }

    /// Time passes, the kubelet acts for every pod, the watch brings all, and tasks go on until none can.
    fn round(&mut self) -> Result<(), Violation> {
        self.begin_step();
        faults::release(&self.node, &self.api);
        if self.plugin.is_none() {
            self.start_plugin();
        }
        self.advance(ROUND);
        self.end_step()?;
        self.run_until_quiet()?;
        self.begin_step();
        if let Some(plugin) = &self.plugin {
            // A stream is opened anew every few minutes, and a list shows what it missed.
            plugin.view.relist();
        }
        self.confirm_what_waits();
        self.end_step()?;
        let numbers: Vec<usize> = self.kubelet.pods.keys().copied().collect();
        for number in numbers {
            self.begin_step();
            self.call_for(number);
            self.end_step()?;
            self.run_until_quiet()?;
        }
        Ok(())
    }

    fn run_until_quiet(&mut self) -> Result<(), Violation> {
        for _ in 0..ROUND_STEPS_MAX {
            let ready = self.executor.ready();
            let Some(task) = self.chance.pick(&ready) else { return Ok(()) };
            self.go_on(task)?;
        }
        Err(Violation(format!("tasks still go on after {ROUND_STEPS_MAX} steps without faults")))
    }

    fn everything_wanted_runs(&self) -> Result<(), Violation> {
        for pod in self.kubelet.pods.values() {
            if pod.wanted && (pod.state != VolumeState::Mounted || !pod.running) {
                return Err(Violation(format!("{} is wanted and does not run: {pod:?}", pod.uid)));
            }
            if !pod.wanted {
                return Err(Violation(format!("{} never ends: {pod:?}", pod.uid)));
            }
        }
        Ok(())
    }

    /// C16, C17: no mount, no target, no record, no trash but those of running pods.
    fn nothing_is_left(&self) -> Result<(), Violation> {
        let targets: Vec<_> = self.kubelet.pods.values().map(|pod| pod.target()).collect();
        for mount in self.node.store_mounts() {
            if !targets.contains(&mount.mount_point) {
                return Err(Violation(format!("a mount is left: {mount:?}")));
            }
        }
        for path in self.node.paths() {
            if path.ends_with("mount") && !targets.contains(&path) {
                return Err(Violation(format!("a target is left: {}", path.display())));
            }
        }
        for record in self.node.records_on_disk() {
            let is_held =
                record.state == TargetState::Held && targets.contains(&record.target.as_path().into());
            if !is_held {
                return Err(Violation(format!("a record is left: {record:?}")));
            }
        }
        for target in targets {
            if !matches!(self.node.view(&target), TargetView::Mounted(stack) if stack.layers.len() == 1) {
                return Err(Violation(format!("{} does not carry one mount", target.display())));
            }
        }
        let (trash, recorded) = (self.node.trash_ids(), self.node.trash_records_on_disk());
        if !trash.is_empty() || !recorded.is_empty() {
            return Err(Violation(format!("trash is left: {trash:?}, on record {recorded:?}")));
        }
        Ok(())
    }

    /// C20, C21.
    fn copies_are_those_named_or_held(&self) -> Result<(), Violation> {
        let named = self.api.handles(DRIVER_NAME);
        let held: Vec<&Handle> = self.kubelet.pods.values().map(|pod| &pod.handle).collect();
        for name in self.node.copy_names() {
            let Ok(handle) = Handle::parse(&name) else { continue };
            if !named.contains(&handle) && !held.contains(&&handle) {
                let health = self.plugin.as_ref().map(|plugin| plugin.view.watch_health());
                return Err(Violation(format!("the orphan {handle} is still there; {health:?}")));
            }
        }
        let ledger = self.ledger.lock().unwrap();
        for (handle, left) in &ledger.contents {
            let found = self.node.copy(handle).and_then(|files| files.get("data").cloned());
            if found.as_ref() != Some(left) {
                return Err(Violation(format!("{handle} lost bytes: {found:?}, left was {left:?}")));
            }
        }
        Ok(())
    }

    /// C32: every refusal is in a count, but for those that a killed process had not written yet.
    fn every_event_was_told(&self) -> Result<(), Violation> {
        let mut ledger = self.ledger.lock().unwrap();
        ledger.seen.events += ledger.event_counts.len() as u32;
        let mut told: BTreeMap<_, u32> = BTreeMap::new();
        for (key, count) in ledger.event_counts.values() {
            *told.entry(key.clone()).or_default() += count;
        }
        for (key, happened) in &ledger.refusals {
            let told = told.get(key).copied().unwrap_or_default();
            let unwritten = ledger.unwritten.get(key).copied().unwrap_or_default();
            if told > *happened || told + unwritten < *happened {
                let lost = format!("{unwritten} were not on disk when a process was killed");
                return Err(Violation(format!(
                    "{key:?} happened {happened} times, {told} were told, {lost}"
                )));
            }
        }
        Ok(())
    }
}
