//! Trees of great depth and width, walked by a process of its own, so that what it costs in memory and descriptors can be
//! told. By default they are small enough for every run; `PER_NODE_HOSTILE=all` makes a hundred thousand levels, a million
//! files and a million names of one file.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::trash::TrashId;
use per_node::ports::copies::{Copies, Deletion};
use rustix::fs::{Mode, OFlags};

use super::{Canary, hostile_copy, on_tmpfs};
use crate::Case;
use crate::contract::COPY_MODE;
use crate::world::{World, handle};

/// Makes the test binary the process that walks.
pub const MEASURE_ARGUMENT: &str = "--measure-walks";

pub fn cases() -> Vec<Case> {
    vec![
        on_tmpfs("c24_c46_very_deep_trees_cost_little_memory_and_few_descriptors", deep),
        on_tmpfs("c24_c46_deep_trees_of_long_names_cost_little_memory", deep_and_long),
        on_tmpfs("c24_c46_very_many_files_cost_little_memory_and_few_descriptors", wide),
        on_tmpfs("c46_very_many_names_of_files_cost_little_memory", linked),
    ]
}

/// What both walks together may add to the process, in KiB: by default, and where everything is large.
const MEMORY_KIB_MAX: (usize, usize) = (5 * 1024, 8 * 1024);
/// How many descriptors they may have open at a time.
const DESCRIPTORS_MAX: usize = 64;

fn size(default: usize, all: usize) -> usize {
    if std::env::var_os("PER_NODE_HOSTILE").is_some_and(|value| value == "all") { all } else { default }
}

fn down(copy: &Path, levels: usize, name: &str) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd = rustix::fs::open(copy, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
        at = rustix::fs::openat(at.as_fd(), name, flags, Mode::empty()).unwrap();
    }
}

fn deep(world: &World) {
    let levels = size(20_000, 100_000);
    walks(world, &format!("{levels} levels"), |copy| {
        // A name that the walk itself would take for what it moves up.
        std::fs::create_dir(copy.join("deep-0-0")).unwrap();
        down(copy, levels, "d");
    });
}

fn deep_and_long(world: &World) {
    let levels = size(20_000, 100_000);
    walks(world, &format!("{levels} levels of 255 bytes"), |copy| down(copy, levels, &"d".repeat(255)));
}

fn wide(world: &World) {
    let files = size(20_000, 1_000_000);
    walks(world, &format!("{files} files in one directory"), |copy| {
        for number in 0..files {
            std::fs::File::create(copy.join(number.to_string())).unwrap();
        }
    });
}

fn linked(world: &World) {
    let files = size(20_000, 500_000);
    walks(world, &format!("{files} files of two names each"), |copy| {
        for number in 0..files {
            std::fs::File::create(copy.join(number.to_string())).unwrap();
            std::fs::hard_link(copy.join(number.to_string()), copy.join(format!("{number}-again"))).unwrap();
        }
    });
}

/// Fills the copy, has a process of its own count and remove it, and prints what that took.
fn walks(world: &World, what: &str, fill: impl FnOnce(&Path)) {
    let canary = Canary::make(world);
    fill(&hostile_copy(world));
    let output = Command::new(std::env::current_exe().unwrap())
        .arg(MEASURE_ARGUMENT)
        .arg(world.path("store"))
        .output()
        .expect("the test binary runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    println!("{what}: {}", told.trim());
    assert!(!world.path("store/trash/t1").exists() && !world.path("store/copies/h").exists());
    canary.is_untouched();
}

/// What the process does that walks: counts the copy `h` of the store, removes it, and fails where that took too much.
pub fn measure() -> ExitCode {
    let store = std::env::args_os().nth(2).expect("a store");
    let store = std::sync::Arc::new(StoreDirs::open(Path::new(&store)).expect("a store"));
    let copies = LinuxCopies::new(store, COPY_MODE);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (stop, descriptors_max) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (before, descriptors_before) = (peak_kib(), descriptors());
    let (counted, removed) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                descriptors_max.fetch_max(descriptors(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        runtime.block_on(async { while !copies.usage(&handle("h")).await.expect("counted").complete {} });
        let counted = peak_kib();
        runtime.block_on(copies.discard(&handle("h"), TrashId(1))).expect("moved");
        let removed = runtime.block_on(copies.delete(TrashId(1))).expect("a walk that ended");
        stop.store(true, Ordering::Relaxed);
        assert_eq!(removed, Deletion::Done);
        (counted, peak_kib())
    });
    let descriptors = descriptors_max.into_inner().saturating_sub(descriptors_before);
    println!(
        "counting {} KiB, removing {} KiB more, {descriptors} descriptors",
        counted - before,
        removed - counted
    );
    let memory_kib_max = size(MEMORY_KIB_MAX.0, MEMORY_KIB_MAX.1) as u64;
    let is_little = removed - before <= memory_kib_max && descriptors <= DESCRIPTORS_MAX;
    if is_little { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The most memory that was ever resident.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
