//! What every adapter of `Records` does.

use std::collections::BTreeSet;
use std::time::Duration;

use per_node::domain::event_series::{Series, SeriesBook, SeriesKey};
use per_node::domain::holds::{Makes, TargetRecord, TargetState};
use per_node::domain::kept::{Keeping, Kept, KeptCopy, ServedTime};
use per_node::domain::pod::{PodName, PodReference, PodUid};
use per_node::domain::proof::{ClusterUid, History, Marker, Revision};
use per_node::domain::refusal::Reason;
use per_node::domain::time::Wall;
use per_node::domain::trash::{CopyMark, TrashId};

use super::{Bench, ContractCase, handle};

pub fn cases<B: Bench>() -> Vec<ContractCase<B>> {
    vec![
        ("c16_a_targets_record_is_kept_replaced_and_dropped", targets),
        ("c14_the_targets_of_one_handle_are_told", targets_of),
        ("c03_a_trash_id_is_never_used_twice", trash_ids),
        ("c15_the_trash_entries_of_a_handle_are_told", trashed),
        ("c23_a_condemned_copy_is_told_until_it_is_acquitted", condemned),
        ("c26_what_is_kept_is_told_until_it_is_kept_no_longer", kept),
        ("c32_event_series_are_kept_by_name", series),
        ("c22_history_and_marker_are_kept", history_and_marker),
        ("c40_every_record_outlives_the_process", restart),
    ]
}

fn record<B: Bench>(bench: &B, target: &str, of: &str, state: TargetState) -> TargetRecord {
    TargetRecord {
        target: bench.target(target),
        handle: handle(of),
        uid: PodUid::parse("uid-1"),
        pod: PodName::parse("namespace", "pod"),
        readonly: true,
        state,
        since: None,
    }
}

fn one_series(pod: &str) -> Series {
    let name = PodName::parse("namespace", pod).expect("a name");
    let pod = PodReference { name, uid: PodUid::parse("uid-1").expect("a uid") };
    let mut book = SeriesBook::new(Duration::from_secs(600), []);
    book.record(
        SeriesKey::new(pod, Reason::VolumeHeld, "held by \"another\"\n".into()),
        Wall { unix_ms: 1_000 },
    );
    book.take_unsaved().remove(0)
}

fn targets<B: Bench>(bench: &mut B) {
    let records = bench.records();
    let attaching = record(bench, "t", "h", TargetState::Attaching(Makes { copy: true, target: true }));
    assert_eq!(records.target(&attaching.target), None);
    bench.wait(records.put_target(&attaching)).expect("written");
    assert_eq!(records.target(&attaching.target), Some(attaching.clone()));
    let held = TargetRecord {
        state: TargetState::Held,
        uid: None,
        pod: None,
        since: Some(Wall { unix_ms: 7 }),
        ..attaching
    };
    bench.wait(records.put_target(&held)).expect("written");
    let before = record(bench, "a", "h", TargetState::Held);
    bench.wait(records.put_target(&before)).expect("written");
    assert_eq!(records.targets(), [before.clone(), held.clone()], "in path order, each once");
    bench.wait(records.drop_target(&held.target)).expect("dropped");
    bench.wait(records.drop_target(&held.target)).expect("nothing to do");
    assert_eq!(records.targets(), [before]);
}

fn targets_of<B: Bench>(bench: &mut B) {
    let records = bench.records();
    for (target, of) in [("a", "h"), ("b", "i"), ("c", "h")] {
        bench.wait(records.put_target(&record(bench, target, of, TargetState::Held))).expect("written");
    }
    let of_h: Vec<_> = records.targets_of(&handle("h")).into_iter().map(|record| record.target).collect();
    assert_eq!(of_h, [bench.target("a"), bench.target("c")]);
    assert_eq!(records.targets_of(&handle("none")), []);
}

fn trash_ids<B: Bench>(bench: &mut B) {
    let mut seen = BTreeSet::new();
    let mut reserve = |bench: &B| {
        let id = bench.wait(bench.records().reserve_trash(&handle("h"), None)).expect("an id");
        assert!(seen.insert(id), "{id} came twice");
        id
    };
    let first = reserve(bench);
    let second = reserve(bench);
    for id in [second, first] {
        bench.wait(bench.records().forget_trash(id)).expect("forgotten");
    }
    reserve(bench);
    bench.restart();
    reserve(bench);
}

fn trashed<B: Bench>(bench: &mut B) {
    let records = bench.records();
    let reserve = |name: &str| bench.wait(records.reserve_trash(&handle(name), None)).expect("an id");
    let (first, other, second) = (reserve("h"), reserve("i"), reserve("h"));
    assert_eq!(records.trashed(&handle("h")), BTreeSet::from([first, second]));
    let mut all = records.trash_records();
    all.sort();
    let mut expect = vec![(first, handle("h")), (other, handle("i")), (second, handle("h"))];
    expect.sort();
    assert_eq!(all, expect);
    bench.wait(records.forget_trash(first)).expect("forgotten");
    bench.wait(records.forget_trash(TrashId(u64::MAX))).expect("nothing to do");
    assert_eq!(records.trashed(&handle("h")), BTreeSet::from([second]));
    assert_eq!(records.trashed(&handle("none")), BTreeSet::new());
}

fn condemned<B: Bench>(bench: &mut B) {
    let longest = handle(&"a".repeat(253));
    let (first, second) =
        (CopyMark { inode: 1, made_ns: None }, CopyMark { inode: u64::MAX, made_ns: Some(u64::MAX) });
    let records = bench.records();
    bench.wait(records.condemn(&handle("h"), first)).expect("written");
    bench.wait(records.condemn(&longest, first)).expect("written");
    bench.wait(records.condemn(&longest, second)).expect("in place of the one before");
    bench.wait(records.acquit(&handle("none"))).expect("nothing to do");
    bench.restart();
    let records = bench.records();
    let mut all = records.condemned();
    all.sort_by_key(|(handle, _)| handle.clone());
    assert_eq!(all, [(longest.clone(), second), (handle("h"), first)]);
    assert_eq!(
        (records.trash_records(), records.trashed(&handle("h"))),
        (vec![], BTreeSet::new()),
        "no entry"
    );
    bench.wait(records.acquit(&longest)).expect("taken back");
    bench.restart();
    assert_eq!(bench.records().condemned(), [(handle("h"), first)]);
}

fn kept<B: Bench>(bench: &mut B) {
    let longest = handle(&"a".repeat(253));
    let most = Kept {
        removed: Wall { unix_ms: u64::MAX },
        since: ServedTime { ms: u64::MAX },
        bytes: Some(u64::MAX),
    };
    let least = Kept { removed: Wall::default(), since: ServedTime::default(), bytes: None };
    let records = bench.records();
    let first = bench.wait(records.reserve_trash(&longest, Some(most))).expect("the longest record fits");
    let going = bench.wait(records.reserve_trash(&handle("h"), None)).expect("an id");
    let second = bench.wait(records.reserve_trash(&handle("h"), Some(least))).expect("an id");
    assert_eq!(records.keeping(), None);
    let keeping = Keeping { served: ServedTime { ms: 7 }, trash_for: Some(Duration::from_secs(60)) };
    bench
        .wait(records.put_keeping(Keeping { served: ServedTime { ms: 9 }, trash_for: None }))
        .expect("written");
    bench.wait(records.put_keeping(keeping)).expect("written");
    drop(records);
    bench.restart();
    let records = bench.records();
    assert_eq!(records.keeping(), Some(keeping));
    let told = [(first, longest, most), (second, handle("h"), least)].map(|(id, handle, kept)| KeptCopy {
        id,
        handle,
        kept,
    });
    assert_eq!(records.kept_trash(), told);
    assert_eq!(
        records.trashed(&handle("h")),
        BTreeSet::from([going, second]),
        "each is an entry as any other"
    );
    bench.wait(records.release_trash(first)).expect("written");
    bench.wait(records.release_trash(first)).expect("nothing to do");
    bench.wait(records.release_trash(TrashId(u64::MAX))).expect("nothing to do");
    bench.wait(records.forget_trash(second)).expect("forgotten");
    drop(records);
    bench.restart();
    let records = bench.records();
    assert_eq!(records.kept_trash(), []);
    let mut left = records.trash_records();
    left.sort();
    assert_eq!(left.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [first, going], "on their way out");
}

fn series<B: Bench>(bench: &mut B) {
    let records = bench.records();
    let first = one_series("a");
    bench.wait(records.put_series(&first)).expect("written");
    let raised = Series { count: 37, posted: 36, ..first };
    bench.wait(records.put_series(&raised)).expect("written");
    let other = one_series("b");
    bench.wait(records.put_series(&other)).expect("written");
    let mut kept = records.series();
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    let mut expect = vec![raised.clone(), other.clone()];
    expect.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(kept, expect);
    bench.wait(records.drop_series(&raised.name)).expect("dropped");
    bench.wait(records.drop_series(&raised.name)).expect("nothing to do");
    assert_eq!(records.series(), [other]);
}

fn marker() -> Marker {
    Marker { driver_name: "per-node.liken.sh".into(), cluster_uid: ClusterUid("uid-of-kube-system".into()) }
}

fn history_and_marker<B: Bench>(bench: &mut B) {
    let records = bench.records();
    assert_eq!((records.history(), records.marker()), (None, None));
    // The lower one is what a person confirms after etcd was restored from a backup.
    for (revision, went_back, durable) in
        [(7, false, false), (90, false, true), (90, true, true), (30, false, true), (31, false, false)]
    {
        let history = History { highest: Revision(revision), went_back };
        bench.wait(records.put_history(history, durable)).expect("written");
        assert_eq!(records.history(), Some(history));
    }
    bench.wait(records.put_marker(&marker())).expect("written");
    let other = Marker { driver_name: "another".into(), ..marker() };
    bench.wait(records.put_marker(&other)).expect("written");
    assert_eq!(records.marker(), Some(other));
}

fn restart<B: Bench>(bench: &mut B) {
    let records = bench.records();
    let kept = record(bench, "t", "h", TargetState::Attaching(Makes { copy: false, target: false }));
    let replaced = record(bench, "u", "h", TargetState::Attaching(Makes { copy: true, target: true }));
    let held = TargetRecord { state: TargetState::Held, ..replaced.clone() };
    for record in [&kept, &replaced, &held] {
        bench.wait(records.put_target(record)).expect("written");
    }
    bench.wait(records.drop_target(&kept.target)).expect("dropped");
    bench.wait(records.put_target(&kept)).expect("written");
    let id = bench.wait(records.reserve_trash(&handle("h"), None)).expect("an id");
    bench.wait(records.put_series(&one_series("a"))).expect("written");
    let history = History { highest: Revision(4), went_back: true };
    for history in [History::up_to(Revision(5)), History::up_to(Revision(6)), history] {
        bench.wait(records.put_history(history, false)).expect("written");
    }
    bench.wait(records.put_marker(&marker())).expect("written");
    drop(records);
    bench.restart();
    let records = bench.records();
    assert_eq!(records.targets(), [kept, held]);
    assert_eq!(records.trash_records(), [(id, handle("h"))]);
    assert_eq!(records.series(), [one_series("a")]);
    assert_eq!((records.history(), records.marker()), (Some(history), Some(marker())));
}
