//! What every adapter of `Mounts` does.

use std::collections::BTreeSet;

use per_node::domain::mount_options::{AccessTime, MountOptions};
use per_node::domain::mount_table::{FileIdentity, MountStack, Place, Shown, StoreMount, TargetView};
use per_node::domain::target::TargetPath;
use per_node::domain::trash::TrashId;
use per_node::ports::mounts::MountsError;

use super::{Bench, ContractCase, handle};

pub fn cases<B: Bench>() -> Vec<ContractCase<B>> {
    vec![
        ("c11_what_is_at_a_target_is_told_apart", kinds),
        ("c10_a_target_is_made_once_and_only_in_a_parent", making),
        ("c10_an_attached_copy_is_seen_at_its_target", attaching),
        ("c05_the_flags_that_were_asked_are_the_mounts", flags),
        ("c16_another_directory_under_the_copys_name_is_not_attached", another_identity),
        ("c16_nothing_is_attached_where_no_directory_is", nowhere_to_attach),
        ("c17_a_stack_is_told_from_the_lowest_and_goes_whole", stacks),
        ("c17_detaching_what_is_not_mounted_is_fine", nothing_to_detach),
        ("c17_only_an_empty_unmounted_target_is_removed", removing),
        ("c15_who_shows_a_copy_is_known_for_each_copy", showing),
        ("c15_a_copy_that_went_to_the_trash_still_belongs_to_its_handle", in_the_trash),
        ("c15_a_copy_that_was_deleted_is_still_seen_where_it_is_shown", deleted),
        ("c40_mounts_outlive_the_process", restart),
        ("c16_a_volume_is_forgotten_when_its_data_file_is_gone", forgotten),
    ]
}

fn stack(view: TargetView) -> MountStack {
    match view {
        TargetView::Mounted(stack) => stack,
        TargetView::Absent | TargetView::Directory { .. } | TargetView::NotADirectory => {
            panic!("no mount: {view:?}")
        }
    }
}

fn copy_of(name: &str) -> Shown {
    Shown { place: Place::Copy(handle(name)), at_root: true, deleted: false }
}

fn showing_of<B: Bench>(bench: &B, name: &str, trashed: &[TrashId]) -> Vec<StoreMount> {
    let trashed: BTreeSet<TrashId> = trashed.iter().copied().collect();
    let mut told = bench.wait(bench.mounts().showing(&handle(name), &trashed)).expect("who shows it");
    told.sort_by(|a, b| a.mount_point.cmp(&b.mount_point));
    let mut table = bench.wait(bench.mounts().table()).expect("the table").mounts;
    table.retain(|mount| mount.shown.belongs_to(&handle(name), &trashed));
    table.sort_by(|a, b| a.mount_point.cmp(&b.mount_point));
    assert_eq!(told, table, "`showing` and `table` differ");
    told
}

fn at(target: &TargetPath, shown: Shown) -> StoreMount {
    StoreMount { mount_point: target.as_path().to_owned(), shown }
}

fn kinds<B: Bench>(bench: &mut B) {
    bench.make_directory(bench.target("bare").as_path());
    bench.make_directory(bench.target("full").as_path());
    bench.make_directory(bench.target("full/entry").as_path());
    bench.make_file(bench.target("file").as_path());
    bench.make_symlink(bench.target("link").as_path());
    let view = |name: &str| bench.look(&bench.target(name));
    assert_eq!(view("bare"), TargetView::Directory { empty: true });
    assert_eq!(view("full"), TargetView::Directory { empty: false });
    assert_eq!(view("file"), TargetView::NotADirectory);
    assert_eq!(view("link"), TargetView::NotADirectory);
    assert_eq!(view("absent"), TargetView::Absent);
    assert_eq!(view("no/parent"), TargetView::Absent);
    assert_eq!(view("file/below"), TargetView::Absent);
}

fn making<B: Bench>(bench: &mut B) {
    let make = |name: &str| bench.wait(bench.mounts().make_target(&bench.target(name)));
    make("t").expect("a target");
    assert_eq!(bench.look(&bench.target("t")), TargetView::Directory { empty: true });
    bench.make_file(bench.target("file").as_path());
    bench.make_symlink(bench.target("link").as_path());
    for occupied in ["t", "file", "link"] {
        assert!(matches!(make(occupied), Err(MountsError::Occupied(_))), "{occupied}");
    }
    for missing in ["no/parent", "file/below"] {
        assert!(matches!(make(missing), Err(MountsError::Missing(_))), "{missing}");
    }
}

fn attaching<B: Bench>(bench: &mut B) {
    let target = bench.published("h", "t");
    let stack = stack(bench.look(&target));
    assert_eq!(
        stack.layers.iter().map(|layer| layer.shown.clone()).collect::<Vec<_>>(),
        [Some(copy_of("h"))]
    );
    assert_eq!(Some(stack.visible), bench.wait(bench.copies().find(&handle("h"))).expect("found"));
    bench.write(target.as_path(), "file", b"of the pod");
    let other = bench.published("h", "u");
    assert_eq!(bench.read(other.as_path(), "file").as_deref(), Some(&b"of the pod"[..]));
}

fn flags<B: Bench>(bench: &mut B) {
    let asked = [
        MountOptions::default(),
        MountOptions { read_only: Some(true), ..MountOptions::default() },
        MountOptions {
            no_exec: Some(true),
            no_suid: Some(true),
            no_dev: Some(true),
            ..MountOptions::default()
        },
        MountOptions { no_dir_access_time: Some(true), ..MountOptions::default() },
        MountOptions { access_time: Some(AccessTime::Never), ..MountOptions::default() },
        MountOptions { access_time: Some(AccessTime::Strict), ..MountOptions::default() },
    ];
    let identity = bench.copy("h");
    for (number, options) in asked.iter().enumerate() {
        let target = bench.target(&number.to_string());
        bench.wait(bench.mounts().make_target(&target)).expect("a target");
        let attached = bench.wait(bench.mounts().attach(&handle("h"), identity, &target, options));
        if bench.locks_access_times()
            && (options.no_dir_access_time.is_some() || options.access_time.is_some())
        {
            assert!(matches!(attached, Err(MountsError::Denied(_))), "{options:?}: {attached:?}");
            continue;
        }
        attached.expect("a mount");
        let flags = stack(bench.look(&target)).layers[0].flags;
        assert!(options.are_met_by(&flags), "{options:?}: {flags:?}");
        assert_eq!(flags.read_only, options.read_only.unwrap_or(false), "{options:?}");
    }
}

fn another_identity<B: Bench>(bench: &mut B) {
    let identity = bench.copy("h");
    let target = bench.target("t");
    bench.wait(bench.mounts().make_target(&target)).expect("a target");
    let other = FileIdentity { inode: identity.inode + 1, ..identity };
    let attach = |name: &str, identity| {
        bench.wait(bench.mounts().attach(&handle(name), identity, &target, &MountOptions::default()))
    };
    assert!(matches!(attach("h", other), Err(MountsError::Missing(_))));
    assert!(matches!(attach("never-made", identity), Err(MountsError::Missing(_))));
    assert_eq!(bench.look(&target), TargetView::Directory { empty: true });
}

fn nowhere_to_attach<B: Bench>(bench: &mut B) {
    let identity = bench.copy("h");
    bench.make_file(bench.target("file").as_path());
    bench.make_symlink(bench.target("link").as_path());
    let attach = |name: &str| {
        let target = bench.target(name);
        bench.wait(bench.mounts().attach(&handle("h"), identity, &target, &MountOptions::default()))
    };
    for missing in ["absent", "no/parent", "file/below"] {
        assert!(matches!(attach(missing), Err(MountsError::Missing(_))), "{missing}");
    }
    for other in ["file", "link"] {
        attach(other).expect_err("nothing is attached to what is no directory");
        assert_eq!(bench.look(&bench.target(other)), TargetView::NotADirectory);
    }
    assert_eq!(showing_of(bench, "h", &[]), []);
}

fn stacks<B: Bench>(bench: &mut B) {
    let target = bench.published("low", "t");
    let identity = bench.copy("high");
    bench
        .wait(bench.mounts().attach(&handle("high"), identity, &target, &MountOptions::default()))
        .expect("a second mount");
    let view = bench.look(&target);
    assert_eq!(view.visible(), Some(&copy_of("high")));
    let told = stack(view);
    let shown: Vec<Option<Shown>> = told.layers.iter().map(|layer| layer.shown.clone()).collect();
    assert_eq!(shown, [Some(copy_of("low")), Some(copy_of("high"))]);
    assert_eq!(told.visible, identity);
    bench.wait(bench.mounts().detach(&target)).expect("detached");
    assert_eq!(bench.look(&target), TargetView::Directory { empty: true });
    assert_eq!(showing_of(bench, "low", &[]), []);
}

fn nothing_to_detach<B: Bench>(bench: &mut B) {
    bench.make_directory(bench.target("bare").as_path());
    bench.make_file(bench.target("file").as_path());
    for name in ["absent", "no/parent", "bare", "file"] {
        bench.wait(bench.mounts().detach(&bench.target(name))).expect("nothing to do");
    }
    assert_eq!(bench.look(&bench.target("bare")), TargetView::Directory { empty: true });
    assert_eq!(bench.look(&bench.target("file")), TargetView::NotADirectory);
}

fn removing<B: Bench>(bench: &mut B) {
    let remove = |bench: &B, name: &str| bench.wait(bench.mounts().remove_target(&bench.target(name)));
    remove(bench, "absent").expect("nothing to do");
    remove(bench, "no/parent").expect("nothing to do");
    let target = bench.published("h", "t");
    assert!(matches!(remove(bench, "t"), Err(MountsError::Busy(_))));
    bench.wait(bench.mounts().detach(&target)).expect("detached");
    bench.make_directory(bench.target("t/entry").as_path());
    assert!(matches!(remove(bench, "t"), Err(MountsError::Occupied(_))));
    bench.make_file(bench.target("file").as_path());
    remove(bench, "file").expect_err("a file is no target directory");
    assert!(bench.is_there(bench.target("file").as_path()));
    bench.make_directory(bench.target("bare").as_path());
    remove(bench, "bare").expect("removed");
    assert_eq!(bench.look(&bench.target("bare")), TargetView::Absent);
}

fn showing<B: Bench>(bench: &mut B) {
    let (a, b) = (bench.published("a", "t"), bench.published("a.b", "u"));
    let second = bench.published("a", "v");
    assert_eq!(showing_of(bench, "a", &[]), [at(&a, copy_of("a")), at(&second, copy_of("a"))]);
    assert_eq!(showing_of(bench, "a.b", &[]), [at(&b, copy_of("a.b"))]);
    assert_eq!(showing_of(bench, "b", &[]), []);
    bench.wait(bench.mounts().detach(&a)).expect("detached");
    assert_eq!(showing_of(bench, "a", &[]), [at(&second, copy_of("a"))]);
}

fn in_the_trash<B: Bench>(bench: &mut B) {
    let target = bench.published("h", "t");
    bench.wait(bench.copies().discard(&handle("h"), TrashId(7))).expect("a held copy can be renamed");
    let trashed = Shown { place: Place::Trash(TrashId(7)), at_root: true, deleted: false };
    assert_eq!(bench.look(&target).visible(), Some(&trashed));
    assert_eq!(showing_of(bench, "h", &[TrashId(7)]), [at(&target, trashed)]);
    assert_eq!(showing_of(bench, "h", &[]), []);
    let fresh = bench.published("h", "u");
    assert_eq!(showing_of(bench, "h", &[]), [at(&fresh, copy_of("h"))]);
    assert_eq!(showing_of(bench, "h", &[TrashId(7)]).len(), 2);
}

fn deleted<B: Bench>(bench: &mut B) {
    let target = bench.published("h", "t");
    bench.wait(bench.copies().discard(&handle("h"), TrashId(3))).expect("discarded");
    bench.wait(bench.copies().delete(TrashId(3))).expect("deleted");
    let gone = Shown { place: Place::Trash(TrashId(3)), at_root: true, deleted: true };
    assert_eq!(bench.look(&target).visible(), Some(&gone));
    assert_eq!(showing_of(bench, "h", &[TrashId(3)]), [at(&target, gone)]);
    bench.wait(bench.mounts().detach(&target)).expect("detached");
    assert_eq!(bench.look(&target), TargetView::Directory { empty: true });
}

fn restart<B: Bench>(bench: &mut B) {
    let target = bench.published("h", "t");
    bench.restart();
    assert_eq!(bench.look(&target).visible(), Some(&copy_of("h")));
    assert_eq!(showing_of(bench, "h", &[]), [at(&target, copy_of("h"))]);
    bench.wait(bench.mounts().detach(&target)).expect("detached");
    assert_eq!(showing_of(bench, "h", &[]), []);
}

fn forgotten<B: Bench>(bench: &mut B) {
    let target = bench.target("pods/u/volumes/kubernetes.io~csi/pv/mount");
    let is_forgotten = |bench: &B| bench.wait(bench.mounts().is_forgotten(&target)).expect("an answer");
    assert!(!is_forgotten(bench), "where the directory is gone nothing is known");
    let above: Vec<_> = target.as_path().ancestors().skip(1).take(5).collect();
    above.into_iter().rev().for_each(|directory| bench.make_directory(directory));
    assert!(is_forgotten(bench));
    bench.make_file(&target.as_path().with_file_name("vol_data.json"));
    assert!(!is_forgotten(bench));
}
