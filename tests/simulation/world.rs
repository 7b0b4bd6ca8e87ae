//! What happens in the world beside the driver: pods and volumes come and go, time passes, machines and
//! processes end, people and API servers err.

use std::time::Duration;

use per_node::domain::handle::Handle;
use per_node::domain::holds::TargetState;
use per_node::domain::time::Wall;
use per_node::domain::use_cases::driver::Brakes;
use per_node::ports::clock::Clock;

use crate::brakes;
use crate::faults;
use crate::kubelet::VolumeState;
use crate::plugin::SWEEP_EVERY;
use crate::simulation::Simulation;

/// One thing that can happen in the world.
pub type Act = fn(&mut Simulation);

/// Each act with how likely it is, against the others.
const ACTS: [(u32, Act); 26] = [
    (10, Simulation::create_volume),
    (6, Simulation::delete_volume),
    (14, Simulation::create_pod),
    (10, Simulation::delete_pod),
    (60, Simulation::call_for_some_pod),
    (4, Simulation::duplicate_call),
    (4, Simulation::give_up_a_call),
    (6, Simulation::write_something),
    (6, Simulation::ask_for_health),
    (30, Simulation::step_the_watch),
    (4, Simulation::lose_the_watch),
    (16, Simulation::pass_time),
    (3, Simulation::crash_or_start),
    (1, Simulation::reboot),
    (2, Simulation::restart_kubelet),
    (4, Simulation::bind_a_subpath),
    (4, Simulation::toggle_busy),
    (2, Simulation::toggle_full),
    (2, Simulation::toggle_read_only),
    (2, Simulation::toggle_stuck),
    (4, Simulation::release_what_hangs),
    (2, Simulation::take_or_restore_backup),
    (1, Simulation::swap_cluster),
    (2, Simulation::jump_calendar),
    (4, Simulation::confirm_what_waits),
    (2, Simulation::touch_the_api_server),
];

impl Simulation {
    /// Something happens.
    pub fn act(&mut self) {
        let must_start = self.plugin.is_none() && self.chance.in_thousand(300);
        if must_start {
            return self.start_plugin();
        }
        let has_brakes = self.options.brakes != Brakes::default();
        let more = if has_brakes { &brakes::ACTS[..] } else { &[] };
        let acts: Vec<(u32, Act)> = ACTS.iter().chain(more).copied().collect();
        let weights: Vec<u32> = acts.iter().map(|(weight, _)| *weight).collect();
        let (_, act) = acts[self.chance.weighted(&weights)];
        act(self);
    }

    pub fn some_handle(&mut self) -> Handle {
        let name = format!("volume.{}", self.chance.below(self.options.handles));
        Handle::parse(&name).expect("a valid handle")
    }

    fn create_pod(&mut self) {
        if self.kubelet.pods.len() >= self.options.pods_max {
            return;
        }
        let handle = self.some_handle();
        let mut volumes = self.api.volume_names();
        volumes.retain(|name| name.trim_end_matches("-twin") == handle.as_str());
        let Some(volume) = self.chance.pick(&volumes) else { return };
        let readonly = self.chance.in_thousand(200);
        let number = self.kubelet.add_pod(&handle, &volume, readonly);
        self.note(|| format!("pod-{number} for {volume} is created"));
    }

    fn delete_pod(&mut self) {
        let numbers: Vec<usize> = self.kubelet.pods.keys().copied().collect();
        let Some(number) = self.chance.pick(&numbers) else { return };
        self.end_pod(number);
    }

    /// The pod's container ends; the kubelet unmounts its subPath binds, or forgets to.
    pub fn end_pod(&mut self, number: usize) {
        let leaves_subpath = self.chance.in_thousand(200);
        let Some(pod) = self.kubelet.pods.get_mut(&number) else { return };
        pod.wanted = false;
        pod.running = false;
        let subpath = pod.subpath();
        self.note(|| format!("pod-{number} is deleted"));
        if !leaves_subpath {
            self.node.unmount(subpath);
        }
    }

    fn call_for_some_pod(&mut self) {
        let numbers: Vec<usize> = self.kubelet.pods.keys().copied().collect();
        if let Some(number) = self.chance.pick(&numbers) {
            self.call_for(number);
        }
    }

    /// What the kubelet's reconciler does next for a pod.
    pub fn call_for(&mut self, number: usize) {
        let Some(pod) = self.kubelet.pods.get(&number).cloned() else { return };
        if pod.call.is_some() {
            return;
        }
        let may_overlap = self.options.overlaps && self.chance.in_thousand(100);
        if self.kubelet.is_mounting(&pod.handle) && !may_overlap {
            return;
        }
        let is_there = self.plugin.as_ref().is_some_and(|plugin| plugin.is_serving());
        match (pod.wanted, pod.state) {
            (true, VolumeState::NotMounted | VolumeState::Uncertain) => {
                if !self.api.volume_names().contains(&pod.volume) {
                    return;
                }
                if is_there {
                    self.node.make_file(pod.data());
                    self.publish(number, true);
                } else if pod.state == VolumeState::Uncertain && !pod.reconstructed {
                    self.forget_for_want_of_the_plugin(number);
                }
            }
            (false, VolumeState::Mounted | VolumeState::Uncertain) if is_there => {
                let call = self.kubelet.note_call(&self.node, number, false, true);
                self.note(|| format!("call {call}: unpublish pod-{number}"));
                let Some(plugin) = &self.plugin else { return };
                plugin.unpublish(call, pod.unpublish_request(), &mut self.executor);
            }
            (true, VolumeState::Mounted)
            | (false, VolumeState::Mounted | VolumeState::Uncertain | VolumeState::NotMounted) => {}
        }
    }

    /// A failed NodeGetCapabilities counts as final: the kubelet forgets the volume and sends no unpublish.
    fn forget_for_want_of_the_plugin(&mut self, number: usize) {
        if !self.chance.in_thousand(200) {
            return;
        }
        self.note(|| format!("the kubelet forgets the volume of pod-{number}"));
        let Some(pod) = self.kubelet.pods.get_mut(&number) else { return };
        if !pod.running {
            pod.state = VolumeState::NotMounted;
            pod.published = false;
            pod.clean_up(&self.node);
        }
    }

    fn publish(&mut self, number: usize, is_waited_for: bool) {
        let Some(pod) = self.kubelet.pods.get(&number).cloned() else { return };
        let call = self.kubelet.note_call(&self.node, number, true, is_waited_for);
        self.note(|| format!("call {call}: publish pod-{number}"));
        if pod.running {
            self.ledger.lock().unwrap().seen.republished += 1;
        }
        let Some(plugin) = &self.plugin else { return };
        plugin.publish(call, pod.publish_request(), &mut self.executor);
    }

    /// The same call once more, as after a lost connection.
    fn duplicate_call(&mut self) {
        let is_there = self.plugin.as_ref().is_some_and(|plugin| plugin.is_serving());
        if !self.options.overlaps || !is_there {
            return;
        }
        let called: Vec<usize> =
            self.kubelet.calls.values().filter(|call| call.is_publish).map(|call| call.pod).collect();
        if let Some(number) = self.chance.pick(&called) {
            self.publish(number, false);
        }
    }

    /// The kubelet asks of every pod, also of one whose publish was refused or is under way.
    fn ask_for_health(&mut self) {
        let numbers: Vec<usize> = self.kubelet.pods.keys().copied().collect();
        let Some(number) = self.chance.pick(&numbers) else { return };
        let (Some(pod), Some(plugin)) = (self.kubelet.pods.get(&number), &self.plugin) else { return };
        if plugin.is_serving() {
            self.note(|| format!("the health of pod-{number}'s volume is asked for"));
            plugin.ask_for_health(
                number as u64,
                &pod.handle,
                pod.target().display().to_string(),
                &mut self.executor,
            );
        }
    }

    fn give_up_a_call(&mut self) {
        if !self.options.deadlines {
            return;
        }
        let waiting = self.kubelet.pods.iter().filter(|(_, pod)| pod.call.is_some());
        let waiting: Vec<usize> = waiting.map(|(number, _)| *number).collect();
        if let Some(number) = self.chance.pick(&waiting) {
            self.note(|| format!("the kubelet waits no longer for pod-{number}"));
            self.kubelet.give_up(number);
        }
    }

    fn write_something(&mut self) {
        let running = self.kubelet.pods.iter().filter(|(_, pod)| pod.running);
        let running: Vec<(usize, Handle)> =
            running.map(|(number, pod)| (*number, pod.handle.clone())).collect();
        if let Some((number, handle)) = self.chance.pick(&running) {
            self.write(&handle, number);
        }
    }

    fn pass_time(&mut self) {
        let spans = [1, 2, 10, 60, 300, 601, 3700];
        let seconds = self.chance.pick(&spans).unwrap_or_default();
        self.note(|| format!("{seconds} s pass"));
        self.advance(Duration::from_secs(seconds));
    }

    fn crash_or_start(&mut self) {
        if self.plugin.is_none() {
            self.start_plugin();
        } else if self.options.crashes {
            self.note(|| "the process is killed".to_owned());
            self.crash();
            self.tear_a_record();
        }
    }

    /// What a torn record knew is lost; that there is a hold is not.
    fn tear_a_record(&mut self) {
        if !self.options.torn_records {
            return;
        }
        let mut held = self.node.records_on_disk();
        held.retain(|record| record.state == TargetState::Held);
        if let Some(record) = self.chance.pick(&held) {
            self.note(|| format!("the record of {} is torn", record.target.as_path().display()));
            self.node.tear_record(&record.target);
        }
    }

    fn reboot(&mut self) {
        if !self.options.reboots {
            return;
        }
        let is_power_failure = self.chance.in_thousand(500);
        self.note(|| "the node reboots".to_owned());
        self.crash();
        self.ledger.lock().unwrap().seen.reboots += 1;
        if is_power_failure {
            self.node.power_failure();
        } else {
            self.node.reboot();
        }
        self.kubelet.pods.values_mut().for_each(|pod| pod.running = false);
        self.kubelet.restart(&self.node);
    }

    fn restart_kubelet(&mut self) {
        if self.options.kubelet_restarts {
            self.note(|| "the kubelet restarts".to_owned());
            self.kubelet.restart(&self.node);
        }
    }

    fn bind_a_subpath(&mut self) {
        if !self.options.subpaths {
            return;
        }
        let running: Vec<(Handle, std::path::PathBuf)> = self
            .kubelet
            .pods
            .values()
            .filter(|pod| pod.running && self.node.flags(pod.subpath()).is_none())
            .map(|pod| (pod.handle.clone(), pod.subpath()))
            .collect();
        if let Some((handle, subpath)) = self.chance.pick(&running) {
            self.note(|| format!("{} is bound", subpath.display()));
            self.node.bind_copy(&handle, true, subpath);
        }
    }

    fn toggle_busy(&mut self) {
        let ended = self.kubelet.pods.values().filter(|pod| !pod.running);
        let ended: Vec<std::path::PathBuf> = ended.map(|pod| pod.target()).collect();
        if let Some(target) = self.chance.pick(&ended) {
            let is_busy = self.options.busy_targets && self.chance.in_thousand(500);
            self.node.set_busy(target, is_busy);
        }
    }

    pub fn toggle_full(&mut self) {
        if self.options.full_disks {
            let bytes = if self.chance.in_thousand(500) { 0 } else { 1 << 30 };
            self.note(|| format!("{bytes} bytes are available"));
            self.node.set_available_bytes(bytes);
        }
    }

    fn toggle_read_only(&mut self) {
        if self.options.read_only_stores {
            let read_only = self.chance.in_thousand(300);
            self.note(|| format!("the store takes {} writes", if read_only { "no" } else { "all" }));
            self.node.set_read_only(read_only);
        }
    }

    fn toggle_stuck(&mut self) {
        if self.options.stuck_files {
            let handle = self.some_handle();
            let name = self.chance.in_thousand(500).then_some("data");
            self.node.set_undeletable(&handle, name);
            let is_immutable = self.chance.in_thousand(200);
            self.node.set_immutable(&handle, is_immutable);
        }
    }

    fn release_what_hangs(&mut self) {
        faults::release(&self.node, &self.api);
    }

    fn jump_calendar(&mut self) {
        if self.options.calendar_jumps {
            let now = self.clock.wall().unix_ms;
            let span = 1000 * 60 * (1 + self.chance.below(90)) as u64;
            let wall = if self.chance.in_thousand(500) { now + span } else { now - span };
            self.note(|| format!("the calendar jumps to {wall}"));
            self.clock.set_wall(Wall { unix_ms: wall });
        }
    }
}

/// How far time goes in one round of the second phase: two rounds make more than a tick.
pub const ROUND: Duration = Duration::from_secs(SWEEP_EVERY.as_secs() / 2 + 1);
