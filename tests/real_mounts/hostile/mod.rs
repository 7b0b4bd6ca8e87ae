//! Hostile copies: what a pod can leave in its copy, and that counting and removing it touches nothing else (C24, C46).
//!
//! Each case makes such a copy beside a canary, has the walks go through it, and looks whether the canary is as it was:
//! every byte, mode, owner and time. What cannot go is told, is told again, and goes when what held it is gone.

mod canary;
mod foreign;
mod racing;
mod sizes;
mod strange;

use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, Deletion};

use crate::Case;
use crate::setting::{PLAIN, in_one, on_each_file_system};
use crate::world::{World, handle};

pub use canary::Canary;
pub use sizes::{MEASURE_ARGUMENT, measure};

pub fn cases() -> Vec<Case> {
    [strange::cases(), foreign::cases(), racing::cases(), sizes::cases()].into_iter().flatten().collect()
}

/// A case on each file system: they differ in how a directory is read on, in names, and in what an entry can be.
fn on_each(name: &str, case: fn(&World)) -> Vec<Case> {
    on_each_file_system(name, move |world| case(&world))
}

/// A case about the walks alone.
fn on_tmpfs(name: &str, case: fn(&World)) -> Case {
    in_one(PLAIN, name, move |world| case(&world))
}

/// The copy of the hostile pod, made empty.
fn hostile_copy(world: &World) -> std::path::PathBuf {
    world.copy("h");
    world.path("store/copies/h")
}

/// Counts the copy, moves it into the trash and deletes it there.
fn count_and_delete(world: &World) -> Deletion {
    world.wait(world.copies.usage(&handle("h"))).expect("it can be counted");
    world.wait(world.copies.discard(&handle("h"), TrashId(1))).expect("it can be moved");
    delete(world)
}

/// One try at what is in the trash.
fn delete(world: &World) -> Deletion {
    world.wait(world.copies.delete(TrashId(1))).expect("a walk that ended")
}

#[track_caller]
fn is_gone(world: &World, deletion: &Deletion) {
    assert_eq!(*deletion, Deletion::Done);
    assert!(!world.path("store/trash/t1").exists() && !world.path("store/copies/h").exists());
}
