//! What a publish, an unpublish and a question for statistics come to, as the client sees it.

use per_node::adapters::memory::{Fault, KernelFault, NodeCall, errno};
use per_node::domain::refusal::Reason;
use per_node::proto::csi::volume_capability::access_mode::Mode;
use per_node::proto::csi::volume_usage::Unit;
use tonic::Code;

use super::rig::{Rig, capability, handle};

#[tokio::test]
async fn c11_the_same_publish_again_is_ok_and_one_mount() {
    let rig = Rig::start().await;
    for _ in 0..3 {
        rig.publish(rig.request("example-store", "u1")).await.expect("published");
        assert_eq!(rig.mounts(), 1);
    }
    assert_eq!(rig.events().await, []);
}

#[tokio::test]
async fn c04_every_access_mode_is_published_the_same_way() {
    let rig = Rig::start().await;
    for mode in 1..=7 {
        let (name, pod) = (format!("volume-{mode}"), format!("u{mode}"));
        let mut request = rig.request(&name, &pod);
        request.volume_capability = Some(capability(&[], Mode::try_from(mode).expect("a mode")));
        let target = request.target_path.clone();
        rig.publish(request).await.unwrap_or_else(|status| panic!("mode {mode}: {status:?}"));
        rig.node.write(&target, "file", b"x").expect("writable");
    }
}

#[tokio::test]
async fn c12_a_second_pod_is_refused_and_told_who_holds_the_copy() {
    let rig = Rig::start().await;
    rig.publish(rig.request("example-store", "u1")).await.expect("published");
    let second = rig.request("example-store", "u2");
    let target = second.target_path.clone();
    let status = rig.publish(second).await.expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("example/name-u1") && status.details().is_empty(), "{status:?}");
    assert!(!rig.node.exists(&target));
    let events = rig.events().await;
    assert_eq!((events.len(), events[0].reason), (1, Reason::VolumeHeld));
    assert_eq!((events[0].subject.uid(), events[0].message.as_str()), ("u2", status.message()));
    rig.unpublish("example-store", &target).await.expect("the loser's unpublish");
    assert_eq!(rig.mounts(), 1, "the winner's hold survives it");
}

#[tokio::test]
async fn c12_a_second_pod_whose_target_was_there_is_told_to_come_again() {
    let rig = Rig::start().await;
    rig.publish(rig.request("example-store", "u1")).await.expect("published");
    let second = rig.request("example-store", "u2");
    let target = second.target_path.clone();
    rig.node.make_directory(&target);
    let status = rig.publish(second).await.expect_err("refused");
    assert_eq!(status.code(), Code::Aborted);
    assert!(status.message().contains("example/name-u1"), "{status:?}");
    assert!(rig.node.exists(&target), "the directory stays");
    assert_eq!(rig.events().await[0].reason, Reason::VolumeHeld);
}

#[tokio::test]
async fn c11_another_readonly_at_the_same_target_already_exists() {
    let rig = Rig::start().await;
    rig.publish(rig.request("example-store", "u1")).await.expect("published");
    let mut other = rig.request("example-store", "u1");
    other.readonly = true;
    let status = rig.publish(other).await.expect_err("refused");
    assert_eq!(status.code(), Code::AlreadyExists);
    assert_eq!(rig.events().await[0].reason, Reason::MountFailed);
    assert_eq!(rig.mounts(), 1);
}

#[tokio::test]
async fn c11_what_would_now_be_refused_is_ok_where_it_is_published() {
    let rig = Rig::start().await;
    rig.publish(rig.request("example-store", "u1")).await.expect("published");
    for flags in [&["noexec"], &["bind"]] {
        let mut again = rig.request("example-store", "u1");
        again.volume_capability = Some(capability(flags, Mode::MultiNodeMultiWriter));
        rig.publish(again).await.expect("it is published");
    }
    let mut again = rig.request("example-store", "u1");
    again.volume_capability = None;
    rig.publish(again).await.expect("it is published");
}

#[tokio::test]
async fn c16_a_failed_attach_is_internal_and_leaves_nothing() {
    let rig = Rig::start().await;
    rig.node.gate().script(NodeCall::Attach, Fault::Before(KernelFault::Errno(errno::EIO)));
    let request = rig.request("example-store", "u1");
    let target = request.target_path.clone();
    let status = rig.publish(request.clone()).await.expect_err("failed");
    assert_eq!(status.code(), Code::Internal, "{status:?}");
    rig.is_untouched("a failed attach");
    assert!(!rig.node.exists(&target));
    let events = rig.events().await;
    assert_eq!((events[0].reason, events[0].message.as_str()), (Reason::MountFailed, status.message()));
    rig.publish(request).await.expect("the next try");
}

#[tokio::test]
async fn c16_an_attach_whose_outcome_is_lost_is_aborted() {
    let rig = Rig::start().await;
    rig.node.gate().script(NodeCall::Attach, Fault::After(KernelFault::Lost));
    let request = rig.request("example-store", "u1");
    let status = rig.publish(request.clone()).await.expect_err("nobody knows");
    assert_eq!(status.code(), Code::Aborted, "{status:?}");
    assert_eq!(rig.events().await, []);
    rig.publish(request).await.expect("the next try settles it");
    assert_eq!(rig.mounts(), 1);
}

#[tokio::test]
async fn c17_a_busy_target_is_internal_and_the_next_unpublish_ends_it() {
    let rig = Rig::start().await;
    let request = rig.request("example-store", "u1");
    let target = request.target_path.clone();
    rig.publish(request).await.expect("published");
    rig.node.set_busy(&target, true);
    let status = rig.unpublish("example-store", &target).await.expect_err("busy");
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(rig.mounts(), 1);
    rig.node.set_busy(&target, false);
    for _ in 0..2 {
        rig.unpublish("example-store", &target).await.expect("unpublished");
        assert!(!rig.node.exists(&target));
    }
    assert!(rig.node.copy(&handle("example-store")).is_some(), "the copy stays (C20)");
}

#[tokio::test]
async fn c46_statistics_are_the_copys_own_and_its_file_systems() {
    let rig = Rig::start().await;
    let request = rig.request("example-store", "u1");
    let target = request.target_path.clone();
    rig.publish(request).await.expect("published");
    rig.node.write(&target, "file", &[0; 5000]).expect("written");
    let usage = rig.statistics("example-store", &target).await.expect("statistics").usage;
    let units: Vec<Unit> = usage.iter().map(|usage| usage.unit()).collect();
    assert_eq!(units, [Unit::Bytes, Unit::Inodes]);
    // A directory of one block and a file of two.
    assert_eq!((usage[0].used, usage[1].used), (3 * 4096, 2));
    for usage in usage {
        assert!(usage.total > 0 && usage.available >= 0 && usage.available <= usage.total, "{usage:?}");
    }
}

#[tokio::test]
async fn c45_answers_are_counted_by_their_codes() {
    let rig = Rig::start().await;
    rig.publish(rig.request("example-store", "u1")).await.expect("published");
    rig.publish(rig.request("example-store", "u2")).await.expect_err("held");
    rig.publish(rig.request("Bad", "u2")).await.expect_err("bad handle");
    rig.unpublish("example-store", &rig.target("u1")).await.expect("unpublished");
    rig.statistics("example-store", "some/path").await.expect_err("not found");
    let answers: Vec<_> = rig.driver.tally().answers().into_iter().collect();
    let expected = [
        (("NodeGetVolumeStats", "NOT_FOUND"), 1),
        // Known from the start, so that the first one is seen to be one more.
        (("NodeGetVolumeStats", "OK"), 0),
        (("NodePublishVolume", "FAILED_PRECONDITION"), 1),
        (("NodePublishVolume", "INVALID_ARGUMENT"), 1),
        (("NodePublishVolume", "OK"), 1),
        (("NodeUnpublishVolume", "OK"), 1),
    ];
    assert_eq!(answers, expected);
}
