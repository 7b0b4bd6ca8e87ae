//! A node, a cluster and one process of the driver, with the words that tests use of them.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use per_node::adapters::memory::{
    self, ApiServer, ClusterView, Fault, KernelFault, Node, NodeCall, SteppedClock, StoredEvent,
};
use per_node::domain::handle::Handle;
use per_node::domain::pod::{PodInfo, PodName, PodReference, PodUid, Subject};
use per_node::domain::refusal::{PublishError, Refusal, UnpublishError};
use per_node::domain::signal::Signal;
use per_node::domain::tally::{SweepOutcome, Tally};
use per_node::domain::target::{KubeletDir, TargetPath};
use per_node::domain::time::Wall;
use per_node::domain::use_cases::driver::{Brakes, Driver, Ports, Settings};
use per_node::domain::use_cases::sweeper::Sweeper;
use per_node::domain::volume_request::{AccessType, PublishRequest, UnpublishRequest, VolumeCapability};
use per_node::ports::records::Records;

pub const DRIVER_NAME: &str = "per-node.liken.sh";
pub const NODE_NAME: &str = "node-1";
pub const SWEEP_EVERY: Duration = Duration::from_secs(600);
pub const WINDOW: Duration = Duration::from_secs(600);
/// More polls than any use case needs here: it bounds a loop that would otherwise hang a test.
const POLLS_MAX: u32 = 100_000;

pub struct World {
    pub node: Node,
    pub api: ApiServer,
    pub clock: SteppedClock,
    pub view: Arc<ClusterView>,
    pub records: Arc<dyn Records>,
    pub driver: Arc<Driver>,
    pub sweeper: Sweeper,
    pub brakes: Brakes,
}

/// A pod with one volume, as the kubelet would publish it.
#[derive(Debug, Clone)]
pub struct Pod {
    pub name: &'static str,
    pub handle: &'static str,
    pub volume: &'static str,
}

/// A pod `name` of the volume `handle`.
pub fn pod(name: &'static str, handle: &'static str) -> Pod {
    Pod { name, handle, volume: handle }
}

pub fn h(raw: &str) -> Handle {
    Handle::parse(raw).expect("a valid handle")
}

/// Runs a future that only pauses, never waits.
#[track_caller]
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..POLLS_MAX {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
    panic!("the future waits for ever");
}

/// Polls a future once.
pub fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// The errno EIO before the call acts.
pub fn io() -> Fault<KernelFault> {
    Fault::Before(KernelFault::Errno(memory::errno::EIO))
}

impl Pod {
    pub fn directory(&self) -> String {
        format!("/k/pods/{}-uid/volumes/kubernetes.io~csi/{}", self.name, self.volume)
    }

    pub fn target(&self) -> String {
        format!("{}/mount", self.directory())
    }

    pub fn target_path(&self) -> TargetPath {
        TargetPath::from_mount_point(self.target().into())
    }

    pub fn reference(&self) -> PodReference {
        PodReference {
            name: PodName::parse("ns", self.name).expect("a name"),
            uid: PodUid::parse(&format!("{}-uid", self.name)).expect("a UID"),
        }
    }

    pub fn request(&self) -> PublishRequest {
        PublishRequest {
            volume_id: self.handle.to_owned(),
            target_path: self.target(),
            capability: Some(capability(&[], "", 5)),
            readonly: false,
            pod: PodInfo {
                uid: Some(format!("{}-uid", self.name)),
                namespace: Some("ns".to_owned()),
                name: Some(self.name.to_owned()),
            },
        }
    }

    pub fn unpublish_request(&self) -> UnpublishRequest {
        UnpublishRequest { volume_id: self.handle.to_owned(), target_path: self.target() }
    }
}

pub fn capability(flags: &[&str], group: &str, access_mode: i32) -> VolumeCapability {
    let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    let access_type = Some(AccessType::Mount { flags, volume_mount_group: group.to_owned() });
    VolumeCapability { access_type, access_mode: Some(access_mode) }
}

impl World {
    /// A new node of a cluster whose watch follows at once.
    pub fn new() -> World {
        World::with(Brakes::default())
    }

    /// The same, whose operator has put something between a deleted volume and the end of its copies.
    pub fn with(brakes: Brakes) -> World {
        let clock = SteppedClock::at(Wall { unix_ms: 1_800_000_000_000 });
        World::of(Node::default(), ApiServer::new(&clock), clock, brakes)
    }

    fn of(node: Node, api: ApiServer, clock: SteppedClock, brakes: Brakes) -> World {
        let view = api.follow(DRIVER_NAME);
        let clock = clock.restarted();
        let ports = memory::ports(&node, &api, Some(view.clone()), &clock);
        let records = ports.records.clone();
        let driver = Arc::new(driver_with(ports.clone(), brakes));
        let cluster = ports.cluster.expect("a cluster");
        let sweeper = Sweeper::new(driver.clone(), cluster);
        World { node, api, clock, view, records, driver, sweeper, brakes }
    }

    /// The process was killed and another one has started: it reconciles before anything else.
    pub fn restart(self) -> World {
        let brakes = self.brakes;
        self.restart_with(brakes)
    }

    /// The same, with other flags.
    pub fn restart_with(mut self, brakes: Brakes) -> World {
        self.brakes = brakes;
        let world = self.killed();
        run(world.driver.reconcile()).expect("the mounts can be read");
        run(world.driver.forget_unused_trash());
        world
    }

    /// The process was killed and another one begins, its start not yet done.
    pub fn killed(self) -> World {
        let World { node, api, clock, view, driver, sweeper, records, brakes } = self;
        drop((view, driver, sweeper, records));
        World::of(node, api, clock, brakes)
    }

    /// The kubelet has made the target's parent and its file.
    pub fn prepare(&self, pod: &Pod) {
        self.node.make_file(format!("{}/vol_data.json", pod.directory()));
    }

    pub fn publish(&self, pod: &Pod) -> Result<(), PublishError> {
        self.publish_as(pod, &pod.request())
    }

    pub fn publish_as(&self, pod: &Pod, request: &PublishRequest) -> Result<(), PublishError> {
        self.prepare(pod);
        run(self.driver.publish(request))
    }

    pub fn unpublish(&self, pod: &Pod) -> Result<(), UnpublishError> {
        run(self.driver.unpublish(&pod.unpublish_request()))
    }

    /// The refusal of a publish, and whether its code may be final.
    #[track_caller]
    pub fn refused(&self, pod: &Pod, request: &PublishRequest) -> (Refusal, bool) {
        match self.publish_as(pod, request) {
            Err(PublishError::Refused { refusal, target_was_there }) => (refusal, !target_was_there),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// The events of a pod once all are posted.
    pub fn events(&self, pod: &Pod) -> Vec<StoredEvent> {
        run(self.driver.step_events());
        self.api.events_of(&pod.reference())
    }

    pub fn create_volume(&self, handle: &str) {
        self.api.create_volume(handle, DRIVER_NAME, &h(handle));
    }

    pub fn delete_volume(&self, handle: &str) {
        assert!(self.api.delete_volume(handle), "there is such a volume");
    }

    /// One pass of the sweep, and the trash after it.
    pub fn sweep(&mut self) -> Duration {
        let delay = run(self.sweeper.step());
        run(self.driver.drain_trash());
        delay
    }

    /// The next tick of the sweep.
    pub fn tick(&mut self) -> Duration {
        self.clock.advance(SWEEP_EVERY);
        self.sweep()
    }

    pub fn swept(&self, outcome: SweepOutcome) -> u64 {
        self.driver.tally().sweeps(outcome)
    }

    pub fn has_copy(&self, handle: &str) -> bool {
        self.node.copy(&h(handle)).is_some()
    }

    /// The bytes of `file` in the copy.
    pub fn file(&self, handle: &str, file: &str) -> Option<Vec<u8>> {
        self.node.copy(&h(handle)).and_then(|files| files.get(file).cloned())
    }

    /// A pod with a published copy, into which it wrote.
    pub fn running(&self, name: &'static str, handle: &'static str) -> Pod {
        let pod = pod(name, handle);
        self.publish(&pod).expect("published");
        self.node.write(pod.target(), "file", name.as_bytes()).expect("written");
        pod
    }

    /// Nothing of a publish is left: no mount, no target, no record.
    #[track_caller]
    pub fn assert_nothing_at(&self, pod: &Pod) {
        use per_node::domain::mount_table::TargetView;
        assert_eq!(self.node.view(pod.target()), TargetView::Absent);
        assert_eq!(self.records.target(&pod.target_path()), None);
        let on_disk = self.node.records_on_disk();
        assert!(on_disk.iter().all(|record| record.target != pod.target_path()), "{on_disk:?}");
    }

    /// An orphan: a copy with `file` in it, whose volume was deleted a moment ago.
    pub fn orphan(&self, handle: &'static str) {
        self.create_volume(handle);
        let web = self.running("web-0", handle);
        self.unpublish(&web).expect("unpublished");
        self.delete_volume(handle);
    }

    /// The events of the node once all are posted.
    pub fn node_events(&self) -> Vec<StoredEvent> {
        run(self.driver.step_events());
        self.api.events_about(&Subject::Node(NODE_NAME.to_owned()))
    }

    /// The calls that reached the node since this was last asked.
    pub fn calls(&self) -> Vec<NodeCall> {
        self.node.gate().take_calls()
    }
}

/// A driver on these ports, with the settings of every test.
pub fn driver_on(ports: Ports) -> Driver {
    driver_with(ports, Brakes::default())
}

fn driver_with(ports: Ports, brakes: Brakes) -> Driver {
    let settings = Settings {
        driver_name: DRIVER_NAME.to_owned(),
        node_name: NODE_NAME.to_owned(),
        kubelet_dir: KubeletDir::new("/k".into(), "/k".into()),
        sweep_every: SWEEP_EVERY,
        event_window: WINDOW,
        brakes,
    };
    let wanted = Arc::new(Signal::default());
    Driver::new(ports, settings, Arc::new(Tally::default()), wanted)
}
