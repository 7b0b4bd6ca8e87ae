//! Random calls over the socket, typed and as raw bytes: after each, no copy is shown to two pods, an answer of OK is true,
//! and in the end everything can be unpublished (C11, C12, C16, C17).

use std::collections::BTreeSet;

use per_node::domain::handle::Handle;
use per_node::proto::csi::volume_capability::access_mode::Mode;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use prost::Message;
use tonic::Code;

use super::raw;
use super::rig::{Rig, capability, handle, soon};
use super::runner::{Mutation, fuzz, mutate, mutations};

const HANDLES: [&str; 3] = ["a", "a.b", "Bad Handle"];
const PODS: [&str; 3] = ["u1", "u2", "u3"];
const FLAGS: [&[&str]; 4] = [&[], &["ro"], &["noexec,nodev"], &["bind"]];

#[derive(Debug, Clone)]
enum Step {
    Publish {
        handle: usize,
        pod: usize,
        volume: usize,
        flags: usize,
        readonly: bool,
    },
    Unpublish {
        handle: usize,
        pod: usize,
        volume: usize,
    },
    Statistics {
        handle: usize,
        pod: usize,
        volume: usize,
    },
    /// A file, a foreign mount, or nothing at the target.
    Disturb {
        pod: usize,
        volume: usize,
        how: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let at = (0..HANDLES.len(), 0..PODS.len(), 0..2usize);
    prop_oneof![
        6 => (at.clone(), 0..FLAGS.len(), any::<bool>()).prop_map(|((handle, pod, volume), flags, readonly)| {
            Step::Publish { handle, pod, volume, flags, readonly }
        }),
        4 => at.clone().prop_map(|(handle, pod, volume)| Step::Unpublish { handle, pod, volume }),
        1 => at.prop_map(|(handle, pod, volume)| Step::Statistics { handle, pod, volume }),
        1 => (0..PODS.len(), 0..2usize, 0..3u8).prop_map(|(pod, volume, how)| Step::Disturb { pod, volume, how }),
    ]
}

/// Two volumes of a pod, as two PersistentVolumes would lie.
fn target(rig: &Rig, pod: usize, volume: usize) -> String {
    let first = rig.target(PODS[pod]);
    if volume == 0 {
        return first;
    }
    let second = first.replace("/pv/", "/pw/");
    rig.node.make_directory(second.trim_end_matches("/mount"));
    second
}

fn shows(rig: &Rig, name: &str, target: &str) -> bool {
    let Ok(about) = Handle::parse(name) else { return false };
    let none = BTreeSet::new();
    let mounts = rig.node.store_mounts();
    mounts
        .iter()
        .any(|mount| mount.shown.belongs_to(&about, &none) && mount.mount_point.to_str() == Some(target))
}

fn nobody_shares(rig: &Rig) -> Result<(), TestCaseError> {
    let none = BTreeSet::new();
    for name in &HANDLES[..2] {
        let mounts = rig.node.store_mounts();
        let shown = mounts.iter().filter(|mount| mount.shown.belongs_to(&handle(name), &none));
        let pods: BTreeSet<Option<String>> = shown
            .map(|mount| {
                let point = mount.mount_point.to_string_lossy().into_owned();
                PODS.iter().find(|pod| point.contains(&format!("/pods/{pod}/"))).map(|&pod| pod.to_owned())
            })
            .collect();
        prop_assert!(pods.len() <= 1, "{} is shown to {:?}", name, pods);
    }
    Ok(())
}

async fn take(rig: &Rig, step: &Step) -> Result<(), TestCaseError> {
    match *step {
        Step::Publish { handle, pod, volume, flags, readonly } => {
            let mut request = rig.request(HANDLES[handle], PODS[pod]);
            request.target_path = target(rig, pod, volume);
            request.volume_capability = Some(capability(FLAGS[flags], Mode::MultiNodeMultiWriter));
            request.readonly = readonly;
            let (name, path) = (request.volume_id.clone(), request.target_path.clone());
            let before = shows(rig, &name, &path);
            match soon(rig.publish(request)).await {
                Ok(()) => prop_assert!(shows(rig, &name, &path), "OK, and nothing is there"),
                Err(status) => {
                    prop_assert_eq!(shows(rig, &name, &path), before, "{:?}", &status);
                    let known = [
                        Code::InvalidArgument,
                        Code::FailedPrecondition,
                        Code::AlreadyExists,
                        Code::Aborted,
                        Code::Internal,
                    ];
                    prop_assert!(known.contains(&status.code()), "{:?}", &status);
                }
            }
        }
        Step::Unpublish { handle, pod, volume } => {
            let path = target(rig, pod, volume);
            if soon(rig.unpublish(HANDLES[handle], &path)).await.is_ok() {
                prop_assert!(
                    HANDLES.iter().all(|name| !shows(rig, name, &path)),
                    "OK, and it is still there"
                );
            }
        }
        Step::Statistics { handle, pod, volume } => {
            let path = target(rig, pod, volume);
            let shown = shows(rig, HANDLES[handle], &path);
            let told = soon(rig.statistics(HANDLES[handle], &path)).await;
            prop_assert!(told.is_err() || shown, "statistics of what is not shown there");
        }
        Step::Disturb { pod, volume, how } => {
            let path = target(rig, pod, volume);
            match how {
                0 if !rig.node.exists(&path) => rig.node.make_file(&path),
                1 if !rig.node.exists(&path) => rig.node.make_directory(&path),
                _ => drop(rig.node.remove(&path)),
            }
        }
    }
    nobody_shares(rig)
}

/// Whatever happened, every target that shows a copy can be unpublished.
async fn all_ends(rig: &Rig) -> Result<(), TestCaseError> {
    for mount in rig.node.store_mounts() {
        let path = mount.mount_point.to_string_lossy().into_owned();
        let ended = soon(rig.unpublish("a", &path)).await;
        prop_assert!(ended.is_ok(), "{}: {:?}", path, ended);
    }
    prop_assert_eq!(rig.mounts(), 0);
    prop_assert!(rig.node.records_on_disk().is_empty(), "a record without a mount");
    Ok(())
}

#[test]
fn c12_random_calls_never_give_a_copy_to_two_pods() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    fuzz("calls", 40, &vec(step(), 1..30), |steps| {
        runtime.block_on(async {
            let rig = Rig::start().await;
            for step in &steps {
                take(&rig, step).await?;
            }
            let ended = all_ends(&rig).await;
            rig.shutdown.cancel();
            ended
        })
    });
}

const PATHS: [&str; 4] = [
    "/csi.v1.Node/NodePublishVolume",
    "/csi.v1.Node/NodeUnpublishVolume",
    "/csi.v1.Node/NodeGetVolumeStats",
    "/csi.v1.Node/NodeGetVolumeHealth",
];

#[test]
fn c16_requests_that_are_nearly_right_leave_nothing_behind() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let call = (0..PATHS.len(), 0..2usize, 0..PODS.len(), mutations(400));
    fuzz("bytes", 40, &vec(call, 1..8), |calls: Vec<(usize, usize, usize, Vec<Mutation>)>| {
        runtime.block_on(async {
            let rig = Rig::start_with_health().await;
            let channel = rig.connect().await;
            for (path, name, pod, mutations) in &calls {
                let request = rig.request(HANDLES[*name], PODS[*pod]).encode_to_vec();
                let files = [request.clone()];
                let bytes = mutations.iter().fold(request, |bytes, one| mutate(bytes, one, &files));
                if let Err(status) = soon(raw::call(channel.clone(), PATHS[*path], bytes)).await {
                    prop_assert!(!matches!(status.code(), Code::Unknown | Code::Unavailable), "{:?}", status);
                    prop_assert!(!status.message().contains("bug"), "{:?}", status);
                }
            }
            // A pod is its UID, which a mutation may have changed: what is counted here are copies and targets.
            let mut targets: Vec<_> =
                rig.node.store_mounts().into_iter().map(|mount| mount.mount_point).collect();
            let count = targets.len();
            targets.sort();
            targets.dedup();
            prop_assert_eq!(targets.len(), count, "a target has two mounts");
            let ended = all_ends(&rig).await;
            rig.shutdown.cancel();
            ended
        })
    });
}
