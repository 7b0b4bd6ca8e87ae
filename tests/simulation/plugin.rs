//! One process of the driver: its start, its loops, and the calls it serves, as `service` runs them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use per_node::adapters::memory::{self, ApiServer, ClusterView, Node, SteppedClock};
use per_node::domain::handle::Handle;
use per_node::domain::health::Condition;
use per_node::domain::refusal::{HealthError, PublishError, UnpublishError};
use per_node::domain::signal::Signal;
use per_node::domain::tally::{Tally, WaitingFor};
use per_node::domain::target::KubeletDir;
use per_node::domain::use_cases::driver::{Brakes, Driver, Settings};
use per_node::domain::use_cases::sweeper::Sweeper;
use per_node::domain::volume_request::{PublishRequest, UnpublishRequest};
use per_node::ports::clock::Clock;
use per_node::ports::cluster::Cluster;
use per_node::ports::records::Records;

use crate::brakes::{self, Limited};
use crate::executor::Executor;
use crate::ledger::{SharedLedger, WatchedCluster};

pub const DRIVER_NAME: &str = "per-node.liken.sh";
pub const NODE_NAME: &str = "node-1";
pub const KUBELET_DIR: &str = "/k";
pub const SWEEP_EVERY: Duration = Duration::from_secs(600);
const LOOK_AT_ROOM_EVERY: Duration = Duration::from_secs(30);

/// What a call was answered.
#[derive(Debug, Clone)]
pub enum Answer {
    Published(Result<(), PublishError>),
    Unpublished(Result<(), UnpublishError>),
    Health(Result<Vec<Condition>, HealthError>),
}

/// Answers of calls by their number; of questions for health, by their pod's.
pub type Answers = Rc<RefCell<Vec<(u64, Answer)>>>;

/// How far a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Serving,
    /// The start failed; the process has ended.
    Ended,
}

/// A process of the driver. Its tasks are in the executor.
pub struct Plugin {
    pub number: u32,
    pub brakes: Brakes,
    pub driver: Arc<Driver>,
    pub view: Arc<ClusterView>,
    pub answers: Answers,
    pub records: Arc<dyn Records>,
    ledger: SharedLedger,
    node: Node,
    /// How many copies one step of the sweep may remove: it may end a pass that has waited for the watch, and make another.
    pub pass_limit: Option<u32>,
    cluster: Arc<dyn Cluster>,
    clock: SteppedClock,
    phase: Rc<RefCell<Phase>>,
    looping: bool,
    confirm: Arc<AtomicBool>,
}

impl Plugin {
    /// Starts: records are made to agree with the kernel before anything is served.
    pub fn start(
        number: u32,
        brakes: Brakes,
        node: &Node,
        api: &ApiServer,
        clock: &SteppedClock,
        ledger: &SharedLedger,
        executor: &mut Executor,
    ) -> Plugin {
        let clock = clock.restarted();
        let view = api.watch(DRIVER_NAME);
        let cluster: Arc<dyn Cluster> = Arc::new(WatchedCluster {
            view: view.clone(),
            api: api.clone(),
            node: node.clone(),
            ledger: ledger.clone(),
            process: number,
        });
        let mut ports = memory::ports(node, api, None, &clock);
        ports.cluster = Some(cluster.clone());
        let records = ports.records.clone();
        let settings = Settings {
            driver_name: DRIVER_NAME.to_owned(),
            node_name: NODE_NAME.to_owned(),
            kubelet_dir: KubeletDir::new(KUBELET_DIR.into(), KUBELET_DIR.into()),
            sweep_every: SWEEP_EVERY,
            event_window: Duration::from_secs(600),
            brakes,
        };
        let wanted = Arc::new(Signal::default());
        view.wake_on_deletion(wanted.clone());
        let driver = Arc::new(Driver::new(ports, settings, Arc::new(Tally::default()), wanted));
        let phase = Rc::new(RefCell::new(Phase::Starting));
        let (starting, told) = (driver.clone(), phase.clone());
        executor.spawn("start".to_owned(), async move {
            let started = starting.reconcile().await;
            if started.is_ok() {
                starting.forget_unused_trash().await;
            }
            *told.borrow_mut() = if started.is_ok() { Phase::Serving } else { Phase::Ended };
        });
        Plugin {
            number,
            brakes,
            ledger: ledger.clone(),
            node: node.clone(),
            pass_limit: brakes.sweep_limit,
            driver,
            view,
            answers: Answers::default(),
            records,
            cluster,
            clock,
            phase,
            looping: false,
            confirm: Arc::default(),
        }
    }

    pub fn is_serving(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    pub fn has_ended(&self) -> bool {
        *self.phase.borrow() == Phase::Ended
    }

    /// A person runs `per-node confirm`.
    pub fn confirm(&self) {
        self.confirm.store(true, Ordering::Relaxed);
        self.driver.sweep_wanted().raise();
    }

    /// Starts the loops once the process serves. Says whether that was now.
    pub fn keep_looping(&mut self, executor: &mut Executor) -> bool {
        if self.looping || !self.is_serving() {
            return false;
        }
        self.looping = true;
        let (driver, clock) = (self.driver.clone(), self.clock.clone());
        executor.spawn("events".to_owned(), async move {
            loop {
                let delay = driver.step_events().await;
                wait(driver.events_wanted(), &clock, delay).await;
            }
        });
        let (driver, clock) = (self.driver.clone(), self.clock.clone());
        executor.spawn("trash".to_owned(), async move {
            loop {
                driver.drain_trash().await;
                wait(driver.trash_wanted(), &clock, Some(SWEEP_EVERY)).await;
            }
        });
        if self.brakes.trash_for.is_some() {
            let (driver, clock) = (self.driver.clone(), self.clock.clone());
            executor.spawn("room".to_owned(), async move {
                loop {
                    wait(&Signal::default(), &clock, Some(LOOK_AT_ROOM_EVERY)).await;
                    driver.make_room().await;
                }
            });
        }
        let (driver, clock, confirm) = (self.driver.clone(), self.clock.clone(), self.confirm.clone());
        let (ledger, node, limit) = (self.ledger.clone(), self.node.clone(), self.pass_limit);
        let mut sweeper = Sweeper::new(self.driver.clone(), self.cluster.clone());
        executor.spawn("sweep".to_owned(), async move {
            loop {
                if confirm.swap(false, Ordering::Relaxed) {
                    let copies = sweeper.over_limit();
                    // A confirmation that fails is asked for again.
                    if let Ok(WaitingFor::SweepLimit) = sweeper.confirm(None).await {
                        let mut ledger = ledger.lock().unwrap();
                        let step = ledger.step;
                        ledger.seen.let_through += 1;
                        ledger.brakes.confirm(copies, step);
                    }
                }
                {
                    let mut ledger = ledger.lock().unwrap();
                    let uptime = ledger.uptime;
                    ledger.brakes.begin_pass(uptime);
                }
                let before = brakes::removable(&node);
                let delay = sweeper.step().await;
                if let Some(limit) = limit {
                    let mut ledger = ledger.lock().unwrap();
                    let limited = Limited { limit, shown: ledger.shown.clone() };
                    ledger.brakes.end_pass(&limited, &before, &node);
                }
                wait(driver.sweep_wanted(), &clock, Some(delay)).await;
            }
        });
        true
    }

    pub fn publish(&self, call: u64, request: PublishRequest, executor: &mut Executor) {
        let (driver, answers) = (self.driver.clone(), self.answers.clone());
        executor.spawn(format!("publish {call}"), async move {
            let answer = driver.publish(&request).await;
            answers.borrow_mut().push((call, Answer::Published(answer)));
        });
    }

    /// A person has a kept copy restored.
    pub fn restore(&self, word: String, executor: &mut Executor) {
        let driver = self.driver.clone();
        executor.spawn(format!("restore {word}"), async move {
            // Whatever is answered: what it did is seen in the store.
            let _ = driver.restore(&word).await;
        });
    }

    /// A person has a kept copy deleted.
    pub fn empty(&self, word: String, executor: &mut Executor) {
        let driver = self.driver.clone();
        executor.spawn(format!("empty {word}"), async move {
            let _ = driver.empty_one(&word).await;
        });
    }

    /// A question for the health of a pod's volume, which nobody waits for.
    pub fn ask_for_health(&self, pod: u64, handle: &Handle, target: String, executor: &mut Executor) {
        let (driver, answers, handle) = (self.driver.clone(), self.answers.clone(), handle.clone());
        executor.spawn(format!("health {pod}"), async move {
            let answer = driver.health(handle.as_str(), &target).await;
            answers.borrow_mut().push((pod, Answer::Health(answer)));
        });
    }

    pub fn unpublish(&self, call: u64, request: UnpublishRequest, executor: &mut Executor) {
        let (driver, answers) = (self.driver.clone(), self.answers.clone());
        executor.spawn(format!("unpublish {call}"), async move {
            let answer = driver.unpublish(&request).await;
            answers.borrow_mut().push((call, Answer::Unpublished(answer)));
        });
    }
}

/// Waits for the signal, and not longer than `delay`. Sleepers look at the clock when they are woken.
async fn wait(signal: &Signal, clock: &SteppedClock, delay: Option<Duration>) {
    let until = delay.map(|delay| clock.monotonic().after(delay));
    let mut raised = pin!(signal.wait());
    poll_fn(|context| {
        let is_over = until.is_some_and(|until| clock.monotonic() >= until);
        if is_over || raised.as_mut().poll(context).is_ready() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
