//! One world from one seed: a step lets one task go on or something happen, then every invariant is asked.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use per_node::adapters::memory::{ApiServer, Backup, Node, SteppedClock};
use per_node::domain::event_series::SeriesKey;
use per_node::domain::handle::Handle;
use per_node::domain::mount_table::FileIdentity;
use per_node::domain::proof::Revision;
use per_node::domain::refusal::{PublishError, Refusal};
use per_node::domain::time::Wall;
use per_node::domain::trash::CopyMark;

use crate::brakes;
use crate::chance::Chance;
use crate::executor::Executor;
use crate::faults;
use crate::invariants::{self, Violation};
use crate::kubelet::{Kubelet, Pod, Taken, is_final};
use crate::ledger::{Ledger, Seen, SharedLedger};
use crate::options::{Calm, Options};
use crate::plugin::{Answer, Plugin};

/// Where the calendar of every world begins.
pub const BEGIN: Wall = Wall { unix_ms: 1_800_000_000_000 };

pub struct Simulation {
    pub options: Options,
    pub chance: Chance,
    pub node: Node,
    pub api: ApiServer,
    pub clock: SteppedClock,
    pub ledger: SharedLedger,
    pub executor: Executor,
    pub plugin: Option<Plugin>,
    pub kubelet: Kubelet,
    pub processes: u32,
    pub backup: Option<Backup>,
    /// The cluster that the node belongs to, while another one answers.
    pub away: Option<Backup>,
    pub uptime: Duration,
    pub copies: BTreeMap<String, FileIdentity>,
    /// The copies that were condemned on disk after the latest step.
    pub condemned: BTreeMap<Handle, CopyMark>,
    /// The highest revision on disk before the latest step.
    pub kept_before: Option<Revision>,
    /// The store knew after the latest step that the API server's history was put back.
    pub went_back: bool,
    /// The same before it.
    pub went_back_before: bool,
    /// The task that the latest step let go on; empty where the world acted.
    pub polled: String,
    /// How many calls that make or move copies were told that there is no space, though there was.
    pub enospc: Arc<AtomicU32>,
    trace: Option<Trace>,
}

/// What happened, line by line; it outlives a panic.
pub type Trace = Arc<Mutex<Vec<String>>>;

/// Runs one seed through both phases, as calmly as is asked.
pub fn run(seed: u64, calm: &Calm, trace: Option<Trace>) -> Result<Seen, Violation> {
    Simulation::new(seed, calm, trace).run()
}

/// More than a proof lists.
const LARGE_CLUSTER_VOLUMES: usize = 100_000;

impl Simulation {
    fn new(seed: u64, calm: &Calm, trace: Option<Trace>) -> Simulation {
        let mut chance = Chance::new(seed);
        let mut options = Options::draw(&mut chance);
        options.brakes = brakes::draw(seed);
        // Where disks never fill no kept copy may ever go early: half of the worlds are left like that.
        options.full_disks |= options.brakes.trash_for.is_some() && seed.is_multiple_of(2);
        calm.apply(&mut options);
        let clock = SteppedClock::at(BEGIN);
        let (node, api) = (Node::default(), ApiServer::new(&clock));
        let enospc = Arc::new(AtomicU32::default());
        faults::begin(&node, &api, &options, chance.next(), &enospc);
        if options.large_cluster {
            api.set_other_volumes(LARGE_CLUSTER_VOLUMES);
        }
        Simulation {
            options,
            chance,
            node,
            api,
            clock,
            ledger: Arc::new(Mutex::new(Ledger::default())),
            executor: Executor::default(),
            plugin: None,
            kubelet: Kubelet::default(),
            processes: 0,
            backup: None,
            away: None,
            uptime: Duration::ZERO,
            copies: BTreeMap::new(),
            condemned: BTreeMap::new(),
            kept_before: None,
            went_back: false,
            went_back_before: false,
            polled: String::new(),
            enospc,
            trace,
        }
    }

    fn run(&mut self) -> Result<Seen, Violation> {
        self.note(|| format!("{:#?}", self.options.clone()));
        self.start_plugin();
        for _ in 0..self.options.steps {
            let ready = self.executor.ready();
            let world_acts = self.chance.in_thousand(self.options.world_acts);
            match self.chance.pick(&ready) {
                Some(task) if !world_acts => self.go_on(task)?,
                Some(_) | None => {
                    self.begin_step();
                    self.act();
                    self.end_step()?;
                }
            }
        }
        self.recover()?;
        let ledger = self.ledger.lock().unwrap();
        Ok(Seen { steps: ledger.step, ..ledger.seen })
    }

    /// One task goes on until it waits.
    pub fn go_on(&mut self, task: u64) -> Result<(), Violation> {
        self.begin_step();
        self.polled = self.executor.name(task).to_owned();
        self.executor.poll(task);
        if self.trace.is_some() {
            let (name, calls) = (self.polled.clone(), self.node.gate().take_calls());
            self.note(|| format!("  {name} {calls:?}"));
        }
        self.end_step()
    }

    pub fn begin_step(&mut self) {
        let mut ledger = self.ledger.lock().unwrap();
        ledger.step += 1;
        ledger.uptime = self.uptime;
        ledger.brakes.begin_step();
        self.kept_before = self.node.revision_on_disk();
        self.went_back_before = self.went_back;
        self.polled.clear();
    }

    pub fn end_step(&mut self) -> Result<(), Violation> {
        self.take_answers()?;
        if let Some(plugin) = &mut self.plugin {
            if plugin.keep_looping(&mut self.executor) {
                invariants::c16_a_start_leaves_no_mount_without_a_hold(self)?;
            } else if plugin.has_ended() {
                self.note(|| "the start failed".to_owned());
                self.crash();
            }
        }
        self.kubelet.bury();
        self.note_what_is_written();
        invariants::check(self)
    }

    fn take_answers(&mut self) -> Result<(), Violation> {
        let Some(plugin) = &self.plugin else { return Ok(()) };
        let answers: Vec<(u64, Answer)> = plugin.answers.borrow_mut().drain(..).collect();
        for (number, answer) in answers {
            self.note(|| format!("answer {number}: {answer:?}"));
            match &answer {
                Answer::Published(answer) => self.take_published(number, answer)?,
                Answer::Health(answer) => {
                    invariants::c49_no_loss_is_told_where_nothing_is_lost(number, answer)?;
                    self.ledger.lock().unwrap().seen.healths += u32::from(answer.is_ok());
                }
                Answer::Unpublished(answer) => {
                    let taken = self.kubelet.take_unpublished(&self.node, number, answer.is_ok());
                    if taken == Taken::Gone {
                        self.ledger.lock().unwrap().seen.unpublished += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn take_published(&mut self, number: u64, answer: &Result<(), PublishError>) -> Result<(), Violation> {
        if let Some(call) = self.kubelet.calls.get(&number).cloned() {
            self.count_answer(&call.of, answer);
            if let Err(error) = answer
                && is_final(error)
            {
                invariants::a_final_error_leaves_nothing(self, &call, error)?;
                invariants::no_final_code_where_the_target_was(&call, error)?;
            }
        }
        let pod = self.kubelet.calls.get(&number).map(|call| call.pod);
        let old = self.options.old_kubelet;
        let taken = self.kubelet.take_published(&self.node, number, answer, old);
        match (taken, pod) {
            (Taken::Started, Some(pod)) => self.start_container(pod),
            (Taken::Forgotten, _) => {
                self.ledger.lock().unwrap().seen.forgotten += 1;
                Ok(())
            }
            (Taken::Started | Taken::Gone | Taken::Nothing, _) => Ok(()),
        }
    }

    /// The pod finds what was left there, and writes.
    fn start_container(&mut self, number: usize) -> Result<(), Violation> {
        let Some(pod) = self.kubelet.pods.get(&number).cloned() else { return Ok(()) };
        invariants::a_pod_that_starts_finds_what_was_left(self, &pod)?;
        self.write(&pod.handle, number);
        Ok(())
    }

    /// A running pod writes something new, if it may.
    pub fn write(&mut self, handle: &Handle, number: usize) {
        let Some(pod) = self.kubelet.pods.get(&number) else { return };
        if pod.readonly || !pod.running {
            return;
        }
        let mut ledger = self.ledger.lock().unwrap();
        let bytes = format!("{} at step {}", pod.uid, ledger.step).into_bytes();
        if self.node.write(pod.target(), "data", &bytes).is_ok() {
            ledger.contents.insert(handle.clone(), bytes);
        }
    }

    fn count_answer(&mut self, pod: &Pod, answer: &Result<(), PublishError>) {
        let mut ledger = self.ledger.lock().unwrap();
        match answer {
            Ok(()) => ledger.seen.published += 1,
            Err(PublishError::OutcomeUnknown { .. }) => {
                ledger.seen.unknown += 1;
                ledger.uncertain.insert(pod.handle.clone());
            }
            Err(PublishError::Refused { refusal, .. }) => {
                let key = (pod.uid.clone(), refusal.reason(), refusal.to_string());
                *ledger.refusals.entry(key).or_default() += 1;
                match refusal {
                    Refusal::Held { .. } => ledger.seen.held += 1,
                    Refusal::Handle(_)
                    | Refusal::Target(_)
                    | Refusal::Request(_)
                    | Refusal::ReadonlyDiffers { .. }
                    | Refusal::Failed(_) => ledger.seen.failed += 1,
                }
            }
        }
    }

    pub fn start_plugin(&mut self) {
        self.processes += 1;
        let number = self.processes;
        self.note(|| format!("process {number} starts"));
        self.note_what_is_unwritten();
        let brakes = self.flags_of_a_start();
        self.ledger.lock().unwrap().brakes.forget_process();
        let (node, api, clock) = (&self.node, &self.api, &self.clock);
        let mut plugin = Plugin::start(number, brakes, node, api, clock, &self.ledger, &mut self.executor);
        let passes = 1 + u32::from(self.options.large_cluster);
        plugin.pass_limit = brakes.sweep_limit.map(|limit| limit * passes);
        self.plugin = Some(plugin);
    }

    /// The highest count of each event that ever was on the disk.
    fn note_what_is_written(&self) {
        let mut ledger = self.ledger.lock().unwrap();
        for series in self.node.series_on_disk() {
            let SeriesKey { subject, reason, message } = series.key;
            let key = (subject.uid().to_owned(), reason, message);
            let written = ledger.written.entry(series.name.as_str().to_owned()).or_insert((key, 0));
            written.1 = written.1.max(series.count);
        }
    }

    /// What was neither on the disk nor at the API server when a process begins died with the last one.
    fn note_what_is_unwritten(&self) {
        let mut ledger = self.ledger.lock().unwrap();
        let mut known: BTreeMap<_, BTreeMap<&String, u32>> = BTreeMap::new();
        for (name, (key, count)) in ledger.event_counts.iter().chain(&ledger.written) {
            let known = known.entry(key).or_default().entry(name).or_default();
            *known = (*count).max(*known);
        }
        let unwritten = ledger.refusals.iter().map(|(key, happened)| {
            let known: u32 = known.get(key).map(|series| series.values().sum()).unwrap_or_default();
            (key.clone(), happened.saturating_sub(known))
        });
        let unwritten = unwritten.collect();
        ledger.unwritten = unwritten;
    }

    /// SIGKILL: nothing of the process goes on, whatever it was doing.
    pub fn crash(&mut self) {
        self.executor.kill();
        self.plugin = None;
        self.kubelet.lose_calls();
        self.ledger.lock().unwrap().seen.crashes += 1;
    }

    pub fn advance(&mut self, span: Duration) {
        self.uptime += span;
        self.clock.advance(span);
        self.executor.wake_all();
    }

    pub fn note(&self, what: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            let step = self.ledger.lock().unwrap().step;
            trace.lock().unwrap().push(format!("{step:5} {}", what()));
        }
    }
}
