//! A seeded simulation of one node: the driver's use cases on the in-memory world, with faults, crashes at any
//! await, a kubelet that retries, overlaps and forgets, and an API server that lags and is put back.
//!
//! One seed fixes everything. A seed runs in two phases: under faults every invariant is asked after each
//! step; then faults end and all that is owed must be done in a bounded number of rounds. A failure is shrunk
//! (fewer steps, fewer kinds of faults) and prints its seed, options, trace and the command that replays it.
//!
//! `PER_NODE_SEED=7` replays one seed, with `PER_NODE_STEPS=90 PER_NODE_WITHOUT=reboots,hangs` as calmly as it was shrunk to;
//! `PER_NODE_SEEDS=100000` runs more, from `PER_NODE_SEED_FROM=1` on.

mod brakes;
mod chance;
mod executor;
mod faults;
mod invariants;
mod kubelet;
mod ledger;
mod options;
mod outside;
mod planted;
mod plugin;
mod proofs;
mod recovery;
mod shrink;
mod simulation;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger::Seen;
use options::{CALMER, Calm};
use shrink::shrink;
use simulation::{Trace, run};

/// Seeds that once broke an invariant, with what they broke. They run first.
const REGRESSIONS: &str = include_str!("regressions.txt");
/// How many seeds run unless told otherwise.
const SEEDS: u64 = 3000;
/// The last lines of a trace that a failure prints.
const TRACE_LINES_MAX: usize = 400;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

/// What `PER_NODE_STEPS` and `PER_NODE_WITHOUT` say.
fn calm_of_environment() -> Calm {
    let named = std::env::var("PER_NODE_WITHOUT").unwrap_or_default();
    let without = named.split(',').filter(|name| !name.is_empty()).map(|name| {
        let known = CALMER.iter().find(|(known, _)| *known == name);
        known
            .unwrap_or_else(|| {
                panic!("PER_NODE_WITHOUT: {name:?} is none of {:?}", CALMER.map(|(name, _)| name))
            })
            .0
    });
    let without = without.collect();
    Calm { steps_max: number("PER_NODE_STEPS").map(|steps| steps as u32), without }
}

/// Runs a seed; where an invariant breaks, shrinks it, runs it again with a trace and tells all of it.
fn check(seed: u64, calm: &Calm) -> Seen {
    let quick = catch_unwind(AssertUnwindSafe(|| run(seed, calm, None)));
    if let Ok(Ok(seen)) = quick {
        return seen;
    }
    let calm = shrink(seed, calm);
    let trace = Trace::default();
    let traced = catch_unwind(AssertUnwindSafe(|| run(seed, &calm, Some(trace.clone()))));
    let lines = trace.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let skipped = lines.len().saturating_sub(TRACE_LINES_MAX);
    println!("{}", lines.first().cloned().unwrap_or_default());
    println!("… {skipped} lines before");
    lines.iter().skip(skipped.max(1)).for_each(|line| println!("{line}"));
    let what = match traced {
        Ok(Ok(_)) => "a second run of it breaks nothing".to_owned(),
        Ok(Err(violation)) => violation.0,
        Err(_) => "it panicked".to_owned(),
    };
    let steps = calm.steps_max.map(|steps| format!("PER_NODE_STEPS={steps} ")).unwrap_or_default();
    let without = calm.without.join(",");
    let replay =
        format!("PER_NODE_SEED={seed} {steps}PER_NODE_WITHOUT={without} cargo test --test simulation");
    panic!("seed {seed}: {what}\n\nreplay: {replay}");
}

/// Runs seeds on every processor, and sums what was seen.
fn check_all(seeds: Vec<u64>) -> Seen {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let shares = (0..threads).map(|share| seeds.iter().copied().skip(share).step_by(threads).collect());
    let shares: Vec<Vec<u64>> = shares.collect();
    let broken = AtomicBool::new(false);
    let work = |share: Vec<u64>| {
        let mut seen = Seen::default();
        for seed in share {
            if broken.load(Ordering::Relaxed) {
                break;
            }
            match catch_unwind(|| check(seed, &Calm::default())) {
                Ok(more) => seen.add(&more),
                Err(panic) => {
                    broken.store(true, Ordering::Relaxed);
                    resume_unwind(panic);
                }
            }
        }
        seen
    };
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        let working: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| work(share))).collect();
        for thread in working {
            match thread.join() {
                Ok(more) => seen.add(&more),
                Err(panic) => resume_unwind(panic),
            }
        }
    });
    seen
}

fn regressions() -> impl Iterator<Item = u64> {
    let lines = REGRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let seed = line.split_whitespace().next().unwrap_or_default();
        seed.parse().unwrap_or_else(|_| panic!("regressions.txt: {line:?} begins with no seed"))
    })
}

#[test]
fn c12_c15_c16_c17_c21_c22_c23_c26_c32_c40_c49_hold_in_every_world() {
    if let Some(seed) = number("PER_NODE_SEED") {
        check(seed, &calm_of_environment());
        return;
    }
    regressions().for_each(|seed| {
        check(seed, &Calm::default());
    });
    let from = number("PER_NODE_SEED_FROM").unwrap_or(1);
    let seeds = number("PER_NODE_SEEDS").unwrap_or(SEEDS);
    let seen = check_all((from..from + seeds).collect());
    println!("{seeds} seeds: {seen:?}");
    assert_eq!(seen.missing(), [""; 0], "what never happens proves nothing");
}

#[test]
fn a_seed_is_the_same_world_every_time() {
    for seed in 1..20 {
        let (first, second) = (Trace::default(), Trace::default());
        let results = [&first, &second].map(|trace| run(seed, &Calm::default(), Some(trace.clone())).is_ok());
        assert_eq!(results[0], results[1], "seed {seed}");
        assert_eq!(*first.lock().unwrap(), *second.lock().unwrap(), "seed {seed}");
    }
}
