//! Calls beside each other, callers that go away, and a process that stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use per_node::adapters::memory::{Fault, NodeCall, Plan};
use per_node::adapters::socket::Drain;
use per_node::domain::mount_table::TargetView;
use tokio::task::JoinSet;
use tonic::Code;

use super::rig::{Rig, eventually, soon};

#[tokio::test]
async fn c12_of_many_pods_at_once_one_wins() {
    let rig = Arc::new(Rig::start().await);
    let mut publishes = JoinSet::new();
    for pod in 0..40 {
        let rig = rig.clone();
        publishes.spawn(async move { rig.publish(rig.request("example-store", &format!("u{pod}"))).await });
    }
    let codes: Vec<Code> = publishes
        .join_all()
        .await
        .into_iter()
        .map(|answer| answer.map_or_else(|s| s.code(), |()| Code::Ok))
        .collect();
    assert_eq!(codes.iter().filter(|&&code| code == Code::Ok).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, Code::Ok | Code::FailedPrecondition)), "{codes:?}");
    assert_eq!(rig.mounts(), 1);
}

#[tokio::test]
async fn c11_one_pods_publishes_at_once_leave_one_mount() {
    let rig = Arc::new(Rig::start().await);
    let mut publishes = JoinSet::new();
    for _ in 0..20 {
        let rig = rig.clone();
        publishes.spawn(async move { rig.publish(rig.request("example-store", "u1")).await });
    }
    for answer in publishes.join_all().await {
        answer.expect("published");
    }
    assert_eq!(rig.mounts(), 1);
}

/// The nth call of the node's from here on panics, and no other. Answers whether it came to that.
fn panic_at(rig: &Rig, nth: usize) -> Arc<AtomicUsize> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    rig.node.gate().plan_with(move |_| {
        assert!(counted.fetch_add(1, Ordering::Relaxed) + 1 != nth, "as a bug would");
        Plan::smooth()
    });
    calls
}

#[tokio::test]
async fn c16_a_publish_that_panics_anywhere_is_internal_and_leaves_nothing() {
    for nth in 1.. {
        let rig = Rig::start().await;
        let request = rig.request("volume-a", "u1");
        let calls = panic_at(&rig, nth);
        let answer = soon(rig.publish(request.clone())).await;
        if calls.load(Ordering::Relaxed) < nth {
            answer.expect("it never panicked");
            assert!(nth > 8, "a publish has more steps than that");
            return;
        }
        assert_eq!(answer.unwrap_err().code(), Code::Internal, "call {nth}");
        assert_eq!((rig.mounts(), rig.node.records_on_disk()), (0, vec![]), "call {nth}");
        assert_eq!(rig.node.view(rig.target("u1")), TargetView::Absent, "call {nth}");
        rig.node.gate().smooth();
        soon(rig.publish(request)).await.expect("the lock is free");
    }
}

#[tokio::test]
async fn c16_a_publish_that_panics_and_cannot_be_taken_back_has_no_final_code() {
    let rig = Rig::start().await;
    let request = rig.request("volume-a", "u1");
    rig.node.gate().plan_with(|call| match call {
        NodeCall::Look => panic!("as a bug would"),
        _ => Plan::smooth(),
    });
    assert_eq!(soon(rig.publish(request.clone())).await.unwrap_err().code(), Code::Aborted);
    rig.node.gate().smooth();
    soon(rig.publish(request.clone())).await.expect("the lock is free");
    // What was published stays, and so does the kubelet's duty to unpublish it.
    panic_at(&rig, 1);
    assert_eq!(soon(rig.publish(request)).await.unwrap_err().code(), Code::Aborted);
    assert_eq!(rig.mounts(), 1);
}

#[tokio::test]
async fn c16_other_calls_that_panic_are_internal_and_leave_their_lock_free() {
    let rig = Rig::start().await;
    let target = rig.target("u1");
    soon(rig.publish(rig.request("volume-a", "u1"))).await.expect("published");
    panic_at(&rig, 1);
    assert_eq!(soon(rig.statistics("volume-a", &target)).await.unwrap_err().code(), Code::Internal);
    soon(rig.statistics("volume-a", &target)).await.expect("known");
    for nth in 1..4 {
        panic_at(&rig, nth);
        assert_eq!(
            soon(rig.unpublish("volume-a", &target)).await.unwrap_err().code(),
            Code::Internal,
            "{nth}"
        );
    }
    rig.node.gate().smooth();
    soon(rig.unpublish("volume-a", &target)).await.expect("unpublished");
    assert_eq!((rig.mounts(), rig.node.records_on_disk()), (0, vec![]));
}

#[tokio::test]
async fn c19_a_volume_that_hangs_holds_up_no_other() {
    let rig = Arc::new(Rig::start().await);
    rig.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    let hanging = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.publish(rig.request("volume-a", "u1")).await })
    };
    rig.hangs(NodeCall::Attach).await;
    soon(rig.publish(rig.request("volume-b", "u2"))).await.expect("another volume");
    soon(rig.unpublish("volume-b", &rig.target("u2"))).await.expect("and its unpublish");
    assert!(!hanging.is_finished());
    rig.node.gate().release_all();
    soon(hanging).await.expect("joins").expect("published");
}

#[tokio::test]
async fn c16_a_publish_whose_caller_went_away_runs_to_its_end() {
    let rig = Rig::start().await;
    let request = rig.request("example-store", "u1");
    rig.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    {
        let call = rig.publish(request.clone());
        tokio::select! {
            answer = call => panic!("it hangs: {answer:?}"),
            () = rig.hangs(NodeCall::Attach) => {}
        }
    }
    // The call and its connection are gone by now; a handler that died with them would have let go of the port.
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(rig.node.gate().hanging(NodeCall::Attach), 1);
    rig.node.gate().release_all();
    eventually(|| rig.driver.tally().answers().get(&("NodePublishVolume", "OK")) == Some(&1)).await;
    assert_eq!(rig.mounts(), 1);
    rig.publish(request).await.expect("whoever comes again finds it done");
    assert_eq!(rig.mounts(), 1);
}

#[tokio::test]
async fn c42_a_shutdown_finishes_what_was_begun_and_begins_nothing() {
    let rig = Arc::new(Rig::start().await);
    let mut open = rig.node().await;
    rig.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    let in_flight = {
        let rig = rig.clone();
        tokio::spawn(async move { rig.publish(rig.request("example-store", "u1")).await })
    };
    rig.hangs(NodeCall::Attach).await;
    rig.shutdown.cancel();
    let late = open.node_publish_volume(rig.request("volume-b", "u2")).await.expect_err("too late");
    assert_eq!(late.code(), Code::Unavailable, "{late:?}");
    assert!(!rig.server.is_finished());
    rig.node.gate().release_all();
    soon(in_flight).await.expect("joins").expect("published");
    let rig = Arc::into_inner(rig).expect("nobody else has it");
    assert_eq!(soon(rig.server).await.expect("joins"), Drain::Complete);
    assert_eq!(rig.node.store_mounts().len(), 1, "nothing is unmounted");
}

#[tokio::test]
async fn c42_a_shutdown_waits_for_calls_without_callers() {
    let rig = Rig::start().await;
    rig.node.gate().script(NodeCall::Attach, Fault::HangBefore);
    tokio::select! {
        answer = rig.publish(rig.request("example-store", "u1")) => panic!("it hangs: {answer:?}"),
        () = rig.hangs(NodeCall::Attach) => {}
    }
    rig.shutdown.cancel();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!rig.server.is_finished());
    rig.node.gate().release_all();
    assert_eq!(soon(rig.server).await.expect("joins"), Drain::Complete);
    assert_eq!(rig.node.store_mounts().len(), 1);
}

#[tokio::test]
async fn c42_open_connections_do_not_hold_up_a_shutdown() {
    let rig = Rig::start().await;
    let mut used = rig.node().await;
    let request = per_node::proto::csi::NodeGetInfoRequest {};
    used.node_get_info(request).await.expect("info");
    let _unused = rig.connect().await;
    rig.shutdown.cancel();
    assert_eq!(soon(rig.server).await.expect("joins"), Drain::Complete);
}
