//! A pod's process that is still at work in the tree while it is counted and removed: it swaps directories for symlinks
//! and back, moves them elsewhere, and goes on writing.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use per_node::adapters::linux::removal;
use per_node::domain::trash::TrashId;
use per_node::ports::copies::Copies;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Canary, delete, hostile_copy, is_gone, on_each};
use crate::Case;
use crate::setting::{EXT4, in_one};
use crate::world::{World, handle};

pub fn cases() -> Vec<Case> {
    [
        on_each("c24_directories_that_become_symlinks_under_the_walk_lead_nowhere", swapped),
        on_each("c24_directories_that_move_under_the_walk_lead_nowhere", moved),
        // Elsewhere writers and walk wait for one another most of the time.
        vec![in_one(EXT4, "c24_somebody_who_goes_on_writing_holds_up_nobody", |world| written(&world))],
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How often a walk meets the other thread.
const ROUNDS: usize = 50;
const DIRECTORIES: usize = 5;
const ENTRIES_MAX: u64 = 5_000;
/// Deeper than a walk keeps directories open.
const DEPTH: usize = 48;

/// Has `disturb` work on the trash entry, again and again, while it is counted and deleted; then deletes what is left.
fn race(world: &World, fill: fn(&Path, &Canary), disturb: fn(&Path, &Canary)) {
    let canary = Canary::make(world);
    for _ in 0..ROUNDS {
        let copy = hostile_copy(world);
        fill(&copy, &canary);
        let entry = world.path("store/trash/t1");
        let (stop, begun) = (AtomicBool::new(false), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                while !stop.load(Ordering::Relaxed) {
                    disturb(&copy, &canary);
                    disturb(&entry, &canary);
                }
            });
            begun.wait();
            // A walk that loses its way is an error of this try, and of no other.
            let _ = world.wait(world.copies.usage(&handle("h")));
            world
                .wait(world.copies.discard(&handle("h"), TrashId(1)))
                .expect("nothing keeps it from being moved");
            for _ in 0..3 {
                let _ = world.wait(world.copies.delete(TrashId(1)));
            }
            stop.store(true, Ordering::Relaxed);
        });
        // The disturber may have written anew after the copy had gone.
        if copy.exists() {
            std::fs::remove_dir_all(&copy).unwrap();
        }
        is_gone(world, &delete(world));
        canary.is_untouched();
    }
}

fn directory(root: &Path, number: usize) -> PathBuf {
    root.join(format!("d{number}"))
}

/// Where the pod keeps its symlinks: on the same file system, and out of the walk's way.
fn aside(root: &Path) -> PathBuf {
    root.parent().and_then(Path::parent).expect("the store").join("aside")
}

fn fill_with_pairs(copy: &Path, canary: &Canary) {
    let _ = std::fs::remove_dir_all(aside(copy));
    std::fs::create_dir(aside(copy)).unwrap();
    for number in 0..DIRECTORIES {
        for below in ["a", "b", "closed"] {
            std::fs::create_dir_all(directory(copy, number).join(below)).unwrap();
            std::fs::write(directory(copy, number).join(below).join("file"), "x").unwrap();
        }
        std::os::unix::fs::symlink(canary.tree(), directory(&aside(copy), number)).unwrap();
    }
}

/// Directory and symlink change names in one step.
fn swapped(world: &World) {
    race(world, fill_with_pairs, |root, _| {
        for number in 0..DIRECTORIES {
            let (one, other) = (directory(root, number), directory(&aside(root), number));
            let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        }
    });
}

fn fill_with_depth(copy: &Path, _: &Canary) {
    for number in 0..2 {
        let mut at = directory(copy, number);
        for level in 0..DEPTH {
            std::fs::create_dir_all(at.join("beside")).unwrap();
            at.push(format!("{level}"));
        }
    }
}

/// A directory far above the walk goes to another place of the same copy, and out of it.
fn moved(world: &World) {
    race(world, fill_with_depth, |root, canary| {
        let outside = canary.tree().parent().and_then(Path::parent).expect("a scratch").join("outside");
        for number in 0..2 {
            let (from, to) = (directory(root, number).join("0/1"), root.join(format!("moved{number}")));
            let _ = std::fs::rename(&from, &to);
            let _ = std::fs::rename(&to, &outside);
            let _ = std::fs::rename(&outside, &from);
            let _ = std::fs::rename(&outside, &to);
        }
        let _ = std::fs::remove_dir_all(&outside);
    });
}

fn written(world: &World) {
    let canary = Canary::make(world);
    let copy = hostile_copy(world);
    std::fs::create_dir(copy.join("busy")).unwrap();
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).unwrap();
    let busy = world.path("store/trash/t1/busy");
    // A descriptor outlives every name.
    let held = std::fs::File::open(&busy).unwrap();
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        for thread in 0..2 {
            let (held, stop) = (&held, &stop);
            scope.spawn(move || {
                let mut number = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let name = format!("{thread}-{number}");
                    let _ = rustix::fs::mkdirat(held, name, rustix::fs::Mode::RWXU);
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        // A walk of the product takes millions of entries, which take their time here.
        let walk = || removal::remove_at_most(ENTRIES_MAX, world.store.trash(), c"t1", &|| false);
        let outcome = (walk().expect("a walk that ended"), walk().expect("and one more"));
        stop.store(true, Ordering::Relaxed);
        outcome
    });
    // Faster than the writers, or told as left: the walks came to an end in any case.
    for left in [outcome.0, outcome.1] {
        assert_eq!(left.entries > 0, left.first.is_some(), "{left:?}");
    }
    is_gone(world, &delete(world));
    canary.is_untouched();
}
