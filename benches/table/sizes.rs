//! How large everything is: small with `PER_NODE_BENCH=quick`, else the sizes of the goals.

use std::time::Duration;

pub struct Sizes {
    pub name: &'static str,
    /// Rounds of calls that are not counted.
    pub warm_up: usize,
    /// Rounds of calls that are.
    pub rounds: usize,
    /// Foreign mounts beside which a pod is mounted.
    pub mounts: &'static [usize],
    /// Publishes at once.
    pub at_once: &'static [usize],
    /// How often each of them.
    pub batches: usize,
    /// Files of a copy whose statistics are asked for.
    pub statistics: &'static [usize],
    /// Files of a tree that is removed, and how many such trees.
    pub removal: &'static [(usize, usize)],
    /// Files of the tree beside whose removal pods are mounted.
    pub beside_removal: usize,
    /// Rounds without it: enough to meet what the machine does every few seconds.
    pub beside_rounds: usize,
    /// Copies that a sweep goes over.
    pub copies: usize,
    /// PersistentVolumes beside which it does.
    pub volumes: &'static [usize],
    /// Sweeps over each.
    pub sweeps: usize,
    /// Copies that are held when the driver starts.
    pub held: &'static [usize],
    /// Starts beside each.
    pub starts: usize,
    /// PersistentVolumes of another driver beside which memory is read.
    pub foreign_volumes: &'static [u64],
    /// Until memory is read, and nothing moves any more.
    pub rest: Duration,
    /// Over which an idle driver is watched.
    pub idle: Duration,
}

const FULL: Sizes = Sizes {
    name: "full",
    warm_up: 30,
    rounds: 1_000,
    mounts: &[10, 100, 1_000, 10_000],
    at_once: &[1, 4, 16, 64],
    batches: 20,
    statistics: &[10, 10_000, 1_000_000],
    removal: &[(10_000, 5), (100_000, 3), (1_000_000, 1)],
    beside_removal: 1_000_000,
    beside_rounds: 20_000,
    copies: 1_000,
    volumes: &[1_000, 10_000, 100_000],
    sweeps: 5,
    held: &[10, 100, 1_000],
    starts: 15,
    foreign_volumes: &[10, 1_000, 10_000, 100_000],
    rest: Duration::from_secs(20),
    idle: Duration::from_secs(60),
};

const QUICK: Sizes = Sizes {
    name: "quick",
    warm_up: 10,
    rounds: 100,
    mounts: &[10, 1_000],
    at_once: &[1, 64],
    batches: 4,
    statistics: &[10, 10_000],
    removal: &[(2_000, 2), (20_000, 2)],
    beside_removal: 50_000,
    beside_rounds: 5_000,
    copies: 200,
    volumes: &[1_000, 10_000],
    sweeps: 2,
    held: &[10, 100],
    starts: 5,
    foreign_volumes: &[10, 10_000],
    rest: Duration::from_secs(8),
    idle: Duration::from_secs(20),
};

impl Sizes {
    pub fn from_environment() -> Sizes {
        match std::env::var("PER_NODE_BENCH").as_deref() {
            Ok("quick") => QUICK,
            Ok("full") | Err(_) => FULL,
            Ok(other) => panic!("PER_NODE_BENCH is {other:?}: quick or full"),
        }
    }
}
