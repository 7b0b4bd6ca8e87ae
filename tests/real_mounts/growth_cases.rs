//! How cost grows: the same call beside few and beside many, in turns within one run. Only the ratio of the two is looked at,
//! against a wide margin; no time is.

use std::path::Path;
use std::time::{Duration, Instant};

use per_node::domain::use_cases::driver::Driver;
use per_node::domain::volume_request::UnpublishRequest;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, unmount};

use crate::Case;
use crate::health_cases::{driver, path_of, publish};
use crate::setting::{PLAIN, in_one};
use crate::showing_cases::kernel_tells_mount_events;
use crate::world::World;

/// How much more a call may cost beside many than beside few. What grows with them costs ten times as much and more.
const GROWTH_MAX: f64 = 2.0;
const MOUNTS_FEW: usize = 20;
const MOUNTS_MANY: usize = 15_000;
/// Mounts of one tree, which is then bound as often as it takes: one call for all of them.
const MOUNTS_OF_A_TREE: usize = 1_000;
/// Copies of this store that are mounted elsewhere: more than any node has pods.
const COPIES_FEW: usize = 10;
const COPIES_MANY: usize = 1_000;
const FILES_FEW: usize = 10;
const FILES_MANY: usize = 5_000;
/// Turns of each size, and calls in each turn.
const TURNS: usize = 3;
const CALLS: usize = 25;
/// What else runs on the machine may spoil a run; what grows spoils each.
const TRIES: usize = 4;
/// Walks of a small copy take less than this by far.
const COUNTED_LIMIT: Duration = Duration::from_secs(60);

pub fn cases() -> Vec<Case> {
    // Kernels that do not tell about mounts leave nothing but to read them all.
    let mounts = kernel_tells_mount_events().then(|| {
        let name = "publishes_and_unpublishes_cost_no_more_beside_many_foreign_mounts";
        in_one(PLAIN, name, |world| foreign_mounts(&world))
    });
    let files =
        in_one(PLAIN, "c46_statistics_that_are_known_cost_no_more_for_many_files", |world| files(&world));
    let copies = kernel_tells_mount_events().then(|| {
        let name = "publishes_and_unpublishes_cost_no_more_beside_many_published_copies";
        in_one(PLAIN, name, |world| published_copies(&world))
    });
    mounts.into_iter().chain(copies).chain([files]).collect()
}

/// What calls took beside few and beside many.
#[derive(Default)]
struct Times {
    few: Vec<Duration>,
    many: Vec<Duration>,
}

impl Times {
    /// The ratio of what the fastest quarter took at most: what else goes on only ever adds.
    fn growth(&mut self) -> f64 {
        let quarter = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 4].as_secs_f64()
        };
        quarter(&mut self.many) / quarter(&mut self.few)
    }
}

fn assert_no_growth<const CALLS: usize>(mut measure: impl FnMut() -> [Times; CALLS]) {
    let mut growth = Vec::new();
    while growth.len() < TRIES {
        let of_each = measure().map(|mut times| times.growth());
        growth.push(of_each);
        if of_each.iter().all(|growth| *growth <= GROWTH_MAX) {
            return;
        }
    }
    panic!("it costs so many times as much: {growth:?}");
}

fn foreign_mounts(world: &World) {
    beside(world, [MOUNTS_FEW, MOUNTS_MANY], |count| mount_foreign(&world.path("elsewhere"), count));
}

fn published_copies(world: &World) {
    for number in 0..COPIES_MANY {
        world.copy(&format!("c{number}"));
    }
    beside(world, [COPIES_FEW, COPIES_MANY], |count| {
        let place = world.path("elsewhere");
        mount("published", &place, "tmpfs", MountFlags::empty(), None).unwrap();
        for number in 0..count {
            let path = place.join(number.to_string());
            std::fs::create_dir(&path).unwrap();
            mount_bind(world.path("store/copies").join(format!("c{number}")), &path).unwrap();
        }
    });
}

/// A publish and an unpublish in turns beside few and beside many mounts that `make` makes in `elsewhere`.
fn beside(world: &World, [few, many]: [usize; 2], make: impl Fn(usize)) {
    let driver = driver(world);
    world.copy("h");
    assert_no_growth(|| {
        let (mut publishes, mut unpublishes) = (Times::default(), Times::default());
        for _ in 0..TURNS {
            for (count, publishes, unpublishes) in [
                (few, &mut publishes.few, &mut unpublishes.few),
                (many, &mut publishes.many, &mut unpublishes.many),
            ] {
                make(count);
                // The first hears of all those mounts.
                publish_and_unpublish(world, &driver);
                for _ in 0..CALLS {
                    let (publish, unpublish) = publish_and_unpublish(world, &driver);
                    publishes.push(publish);
                    unpublishes.push(unpublish);
                }
                unmount(world.path("elsewhere"), UnmountFlags::DETACH).unwrap();
            }
        }
        [publishes, unpublishes]
    });
}

/// Mounts that go together, with the one that they lie in.
fn mount_foreign(place: &Path, count: usize) {
    mount("foreign", place, "tmpfs", MountFlags::empty(), None).unwrap();
    let tree = place.join("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..count.min(MOUNTS_OF_A_TREE) {
        let path = tree.join(number.to_string());
        std::fs::create_dir(&path).unwrap();
        mount_bind(&path, &path).unwrap();
    }
    for number in 1..count.div_ceil(MOUNTS_OF_A_TREE) {
        let copy = place.join(number.to_string());
        std::fs::create_dir(&copy).unwrap();
        mount_bind_recursive(&tree, &copy).unwrap();
    }
}

/// What each of the two took.
fn publish_and_unpublish(world: &World, driver: &Driver) -> (Duration, Duration) {
    let began = Instant::now();
    publish(world, driver, "h");
    let publish = began.elapsed();
    let request = UnpublishRequest { volume_id: "h".to_owned(), target_path: path_of(world, "h") };
    let began = Instant::now();
    world.wait(driver.unpublish(&request)).expect("unpublished");
    (publish, began.elapsed())
}

fn files(world: &World) {
    let driver = driver(world);
    for (handle, files) in [("few", FILES_FEW), ("many", FILES_MANY)] {
        world.copy(handle);
        for number in 0..files {
            std::fs::write(world.path("store/copies").join(handle).join(number.to_string()), "").unwrap();
        }
        publish(world, &driver, handle);
        let began = Instant::now();
        while used_inodes(world, &driver, handle) != 1 + files as u64 {
            assert!(began.elapsed() < COUNTED_LIMIT, "{handle} is never counted");
        }
    }
    assert_no_growth(|| {
        let mut times = Times::default();
        for _ in 0..TURNS * CALLS {
            for (handle, times) in [("few", &mut times.few), ("many", &mut times.many)] {
                let began = Instant::now();
                used_inodes(world, &driver, handle);
                times.push(began.elapsed());
            }
        }
        [times]
    });
}

fn used_inodes(world: &World, driver: &Driver, handle: &str) -> u64 {
    let statistics = world.wait(driver.statistics(handle, &path_of(world, handle)));
    statistics.expect("statistics").usage.used_inodes
}
