//! C10 to C13: the decision about a publish, as a table of what was observed.

use std::collections::BTreeSet;

use per_node::domain::holds::{Holds, TargetRecord, TargetState};
use per_node::domain::mount_options::{AccessTime, MountFlags, MountOptions};
use per_node::domain::mount_table::{FileIdentity, Layer, MountStack, Place, Shown, TargetView};
use per_node::domain::pod::{Pod, PodUid};
use per_node::domain::publish::{Decision, Observed, decide_publish};
use per_node::domain::refusal::{FailedStep, Holder, Refusal};
use per_node::domain::target::TargetPath;
use per_node::domain::trash::TrashId;
use per_node::domain::volume_request::{RequestError, VolumeAsk};

use crate::world::h;

/// What one row of the table observes; the rest is as on a fresh node.
struct Row {
    view: TargetView,
    at_target: Pod,
    record: Option<TargetRecord>,
    holders: Vec<Pod>,
    readonly: bool,
    ask: Result<VolumeAsk, RequestError>,
}

const ASK: VolumeAsk = VolumeAsk {
    readonly: false,
    options: MountOptions {
        read_only: None,
        no_exec: None,
        no_suid: None,
        no_dev: None,
        no_dir_access_time: None,
        access_time: None,
    },
    group: None,
};

fn pod(uid: &str) -> Pod {
    let target = TargetPath::from_mount_point(format!("/k/{uid}").into());
    Pod { uid: PodUid::parse(uid), name: None, target }
}

fn row(view: TargetView) -> Row {
    Row { view, at_target: pod("own"), record: None, holders: Vec::new(), readonly: false, ask: Ok(ASK) }
}

fn shown(place: Place, at_root: bool, deleted: bool) -> Option<Shown> {
    Some(Shown { place, at_root, deleted })
}

fn mounted(layers: Vec<Option<Shown>>) -> TargetView {
    let flags = MountFlags {
        read_only: false,
        no_exec: false,
        no_suid: false,
        no_dev: false,
        no_dir_access_time: false,
        access_time: AccessTime::Relative,
    };
    let layers = layers.into_iter().map(|shown| Layer { shown, flags }).collect();
    TargetView::Mounted(MountStack { layers, visible: FileIdentity { device: 1, inode: 2 } })
}

fn copy(handle: &str) -> Option<Shown> {
    shown(Place::Copy(h(handle)), true, false)
}

fn record(readonly: bool) -> TargetRecord {
    let pod = pod("own");
    let state = TargetState::Held;
    TargetRecord {
        target: pod.target,
        handle: h("data"),
        uid: pod.uid,
        pod: None,
        readonly,
        state,
        since: None,
    }
}

/// The decision about a publish of `data` by the pod `own`, one of whose copies lies in the trash as `t7`.
fn decide(row: Row) -> Decision {
    let holds = Holds { holders: row.holders, leftovers: Vec::new() };
    decide_publish(&Observed {
        handle: &h("data"),
        pod: &pod("own"),
        pod_at_target: &row.at_target,
        view: &row.view,
        trashed: &BTreeSet::from([TrashId(7)]),
        record: row.record.as_ref(),
        holds: &holds,
        readonly: row.readonly,
        ask: &row.ask,
    })
}

fn held_by(uid: &str) -> Decision {
    Decision::Refuse(Refusal::Held { handle: h("data"), holder: Holder::of(&pod(uid)) })
}

fn failed(step: FailedStep) -> Decision {
    Decision::Refuse(Refusal::Failed(step))
}

#[test]
fn c10_a_free_copy_is_published_at_an_absent_or_bare_target() {
    for view in [TargetView::Absent, TargetView::Directory { empty: true }] {
        assert_eq!(decide(row(view)), Decision::Publish(ASK));
    }
}

#[test]
fn c11_a_target_that_shows_this_pods_copy_is_published_whatever_else_is_asked() {
    let own_copies = [
        copy("data"),
        shown(Place::Copy(h("data")), true, true),
        shown(Place::Trash(TrashId(7)), true, false),
        shown(Place::Trash(TrashId(7)), true, true),
    ];
    for own in own_copies {
        let view = mounted(vec![own.clone()]);
        assert_eq!(decide(row(view.clone())), Decision::AlreadyPublished, "{own:?}");
        let invalid = Row { ask: Err(RequestError::Block), ..row(view.clone()) };
        assert_eq!(decide(invalid), Decision::AlreadyPublished);
        let contested = Row { holders: vec![pod("other")], ..row(view) };
        assert_eq!(decide(contested), Decision::AlreadyPublished);
    }
}

#[test]
fn c11_readonly_is_compared_only_where_it_is_on_record() {
    let view = || mounted(vec![copy("data")]);
    let differs = |published| Decision::Refuse(Refusal::ReadonlyDiffers { handle: h("data"), published });
    let cases = [
        (None, true, Decision::AlreadyPublished),
        (None, false, Decision::AlreadyPublished),
        (Some(true), true, Decision::AlreadyPublished),
        (Some(false), false, Decision::AlreadyPublished),
        (Some(true), false, differs(true)),
        (Some(false), true, differs(false)),
    ];
    for (recorded, readonly, expect) in cases {
        let observed = Row { record: recorded.map(record), readonly, ..row(view()) };
        assert_eq!(decide(observed), expect, "recorded {recorded:?}, asked {readonly}");
    }
}

#[test]
fn c11_what_is_not_this_pods_visible_copy_is_in_the_way() {
    let others = [
        vec![None],
        vec![copy("data"), None],
        vec![copy("other")],
        vec![shown(Place::Copy(h("data")), false, false)],
        vec![shown(Place::Trash(TrashId(8)), true, false)],
    ];
    for layers in others {
        let expect = failed(FailedStep::TargetForeignMount);
        assert_eq!(decide(row(mounted(layers.clone()))), expect, "{layers:?}");
    }
    let covered = mounted(vec![None, copy("data")]);
    assert_eq!(decide(row(covered)), Decision::AlreadyPublished);
}

#[test]
fn c12_another_pod_at_the_target_is_another_holder() {
    let observed =
        Row { at_target: pod("other"), holders: vec![pod("other")], ..row(mounted(vec![copy("data")])) };
    assert_eq!(decide(observed), held_by("other"));
}

#[test]
fn c12_the_request_is_judged_before_the_holder_and_the_holder_before_what_is_in_the_way() {
    let both = Row {
        ask: Err(RequestError::NoCapability),
        holders: vec![pod("other")],
        ..row(TargetView::NotADirectory)
    };
    assert_eq!(decide(both), Decision::Refuse(Refusal::Request(RequestError::NoCapability)));
    let contested = Row { holders: vec![pod("other")], ..row(TargetView::NotADirectory) };
    assert_eq!(decide(contested), held_by("other"));
    assert_eq!(decide(row(TargetView::NotADirectory)), failed(FailedStep::TargetNotADirectory));
    let full = TargetView::Directory { empty: false };
    assert_eq!(decide(row(full)), failed(FailedStep::TargetNotEmpty));
}

#[test]
fn c14_the_pods_own_other_targets_are_no_holder() {
    let mut elsewhere = pod("own");
    elsewhere.target = TargetPath::from_mount_point("/k/elsewhere".into());
    let observed = Row { holders: vec![elsewhere.clone()], ..row(TargetView::Absent) };
    assert_eq!(decide(observed), Decision::Publish(ASK));
    let observed = Row { holders: vec![elsewhere, pod("other")], ..row(TargetView::Absent) };
    assert_eq!(decide(observed), held_by("other"));
}
