//! Calls that must not be made: mocks that fail the test when they are.

use std::sync::Arc;

use async_trait::async_trait;
use mockall::mock;
use per_node::adapters::memory;
use per_node::domain::handle::Handle;
use per_node::domain::mount_options::{AccessTime, MountFlags, MountOptions};
use per_node::domain::mount_table::{
    FileIdentity, Layer, MountStack, MountTable, Place, Shown, StoreMount, TargetView,
};
use per_node::domain::refusal::{FailedStep, PublishError, Refusal};
use per_node::domain::target::TargetPath;
use per_node::domain::trash::TrashId;
use per_node::ports::mounts::{Mounts, MountsError};
use std::collections::BTreeSet;

use crate::world::{Pod, World, driver_on, h, pod, run};

mock! {
    Kernel {}

    #[async_trait]
    impl Mounts for Kernel {
        async fn look(&self, target: &TargetPath) -> Result<TargetView, MountsError>;
        async fn showing(
            &self,
            handle: &Handle,
            trashed: &BTreeSet<TrashId>,
        ) -> Result<Vec<StoreMount>, MountsError>;
        async fn table(&self) -> Result<MountTable, MountsError>;
        async fn make_target(&self, target: &TargetPath) -> Result<(), MountsError>;
        async fn attach(
            &self,
            handle: &Handle,
            copy: FileIdentity,
            target: &TargetPath,
            options: &MountOptions,
        ) -> Result<(), MountsError>;
        async fn detach(&self, target: &TargetPath) -> Result<(), MountsError>;
        async fn remove_target(&self, target: &TargetPath) -> Result<(), MountsError>;
        async fn is_forgotten(&self, target: &TargetPath) -> Result<bool, MountsError>;
    }
}

fn showing(flags: MountFlags, inode: u64) -> TargetView {
    let shown = Shown { place: Place::Copy(h("data")), at_root: true, deleted: false };
    let visible = FileIdentity { device: 1, inode };
    TargetView::Mounted(MountStack { layers: vec![Layer { shown: Some(shown), flags }], visible })
}

const FLAGS: MountFlags = MountFlags {
    read_only: false,
    no_exec: false,
    no_suid: false,
    no_dev: false,
    no_dir_access_time: false,
    access_time: AccessTime::Relative,
};

/// A world whose kernel is this one.
fn publish_on(kernel: MockKernel, pod: &Pod) -> (World, Result<(), PublishError>) {
    let world = World::new();
    let mut ports = memory::ports(&world.node, &world.api, None, &world.clock);
    ports.mounts = Arc::new(kernel);
    let answer = run(driver_on(ports).publish(&pod.request()));
    (world, answer)
}

fn shows_data(target: &str) -> StoreMount {
    let shown = Shown { place: Place::Copy(h("data")), at_root: true, deleted: false };
    StoreMount { mount_point: target.into(), shown }
}

#[test]
fn c11_a_republish_attaches_detaches_makes_and_removes_nothing() {
    let web = pod("web-0", "data");
    let mut kernel = MockKernel::new();
    kernel.expect_look().times(1).returning(|_| Ok(showing(FLAGS, 2)));
    let mount = shows_data(&web.target());
    kernel.expect_showing().times(1).returning(move |_, _| Ok(vec![mount.clone()]));
    kernel.expect_table().never();
    kernel.expect_make_target().never();
    kernel.expect_attach().never();
    kernel.expect_detach().never();
    kernel.expect_remove_target().never();
    let (world, answer) = publish_on(kernel, &web);
    assert_eq!(answer, Ok(()));
    assert_eq!(world.node.copy_names(), [""; 0]);
}

#[test]
fn c12_a_refused_publish_touches_no_mount_and_no_directory() {
    let mut kernel = MockKernel::new();
    kernel.expect_look().times(1).returning(|_| Ok(TargetView::Absent));
    let mount = shows_data(&pod("web-0", "data").target());
    kernel.expect_showing().times(1).returning(move |_, _| Ok(vec![mount.clone()]));
    kernel.expect_make_target().never();
    kernel.expect_attach().never();
    kernel.expect_detach().never();
    kernel.expect_remove_target().never();
    let (world, answer) = publish_on(kernel, &pod("web-1", "data"));
    assert!(matches!(answer, Err(PublishError::Refused { refusal: Refusal::Held { .. }, .. })));
    assert_eq!(world.node.copy_names(), [""; 0]);
}

/// A publish whose attach succeeds and whose second look sees this.
fn checked(second: TargetView) -> Result<(), PublishError> {
    let web = pod("web-0", "data");
    let mut kernel = MockKernel::new();
    let mut looks = vec![second, TargetView::Absent];
    kernel.expect_look().times(2).returning(move |_| Ok(looks.pop().expect("two looks")));
    kernel.expect_showing().returning(|_, _| Ok(Vec::new()));
    kernel.expect_make_target().times(1).returning(|_| Ok(()));
    kernel.expect_attach().times(1).returning(|_, _, _, _| Ok(()));
    kernel.expect_detach().times(1).returning(|_| Ok(()));
    kernel.expect_remove_target().times(1).returning(|_| Ok(()));
    let (world, answer) = publish_on(kernel, &web);
    assert!(!world.has_copy("data"), "the new empty copy is taken back");
    answer
}

#[test]
fn c10_a_mount_that_is_not_as_asked_is_taken_back() {
    let failed =
        |step| Err(PublishError::Refused { refusal: Refusal::Failed(step), target_was_there: false });
    let read_only = MountFlags { read_only: true, ..FLAGS };
    // The first inode that the world gives a copy.
    let copy = 2;
    assert_eq!(checked(TargetView::Absent), failed(FailedStep::CheckCopy));
    assert_eq!(checked(showing(FLAGS, 99)), failed(FailedStep::CheckCopy));
    assert_eq!(checked_asking_rw(showing(read_only, copy)), failed(FailedStep::CheckFlags));
}

/// As `checked`, for a request that asks for `rw`.
fn checked_asking_rw(second: TargetView) -> Result<(), PublishError> {
    let web = pod("web-0", "data");
    let mut kernel = MockKernel::new();
    let mut looks = vec![second, TargetView::Absent];
    kernel.expect_look().times(2).returning(move |_| Ok(looks.pop().expect("two looks")));
    kernel.expect_showing().returning(|_, _| Ok(Vec::new()));
    kernel.expect_make_target().times(1).returning(|_| Ok(()));
    kernel.expect_attach().times(1).returning(|_, _, _, _| Ok(()));
    kernel.expect_detach().times(1).returning(|_| Ok(()));
    kernel.expect_remove_target().times(1).returning(|_| Ok(()));
    let world = World::new();
    let mut ports = memory::ports(&world.node, &world.api, None, &world.clock);
    ports.mounts = Arc::new(kernel);
    let mut request = web.request();
    request.capability = Some(crate::world::capability(&["rw"], "", 5));
    run(driver_on(ports).publish(&request))
}

#[test]
fn c18_a_target_outside_the_kubelet_directory_is_not_even_looked_at() {
    let mut kernel = MockKernel::new();
    kernel.expect_look().never();
    kernel.expect_showing().never();
    let world = World::new();
    let mut ports = memory::ports(&world.node, &world.api, None, &world.clock);
    ports.mounts = Arc::new(kernel);
    let mut request = pod("web-0", "data").request();
    request.target_path = "/elsewhere/mount".to_owned();
    assert!(run(driver_on(ports).publish(&request)).is_err());
}
