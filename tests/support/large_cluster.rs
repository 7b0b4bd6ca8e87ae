//! A cluster of any size in the fake API server, with something of everything that a plugin can tell: copies of all sizes, held
//! and not, orphans, what a mount keeps, what is not yet counted, trash, refusals all over the last hour, nodes that are mute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use per_node::proto::report::{NodeReport, Refusal, Store, TrashEntry, timestamp};

use crate::cluster::{NOW, copy, holder, plugin, refusal, report, tells, volume};
use crate::objects_api::{Answer, Backend, ObjectsApi};

/// [`NOW`] in milliseconds.
const NOW_MS: u64 = 1_796_007_600_000;
/// How long holders keep their copies in a lively cluster.
const LIVELY_EVERY: Duration = Duration::from_secs(10);

/// How large, and what of it is out of order.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub nodes: usize,
    pub volumes: usize,
    /// Copies on each node.
    pub copies: usize,
    /// Until a plugin answers.
    pub late: Duration,
    /// Nodes that do not answer.
    pub mute: usize,
    /// Pods come and go.
    pub is_lively: bool,
}

/// Puts all of it there.
pub fn fill(api: &ObjectsApi, shape: Shape) {
    let began = Instant::now();
    for number in 0..shape.volumes {
        let phase = if number % 17 == 3 { "Released" } else { "Bound" };
        volume(api, &handle(number), &handle(number), phase, Some("Bound"));
    }
    for number in 0..shape.nodes {
        let name = format!("node-{number:04}");
        let backend = match (number < shape.mute, shape.is_lively) {
            (true, _) => Backend::Hangs,
            (false, false) => late(answer(tells(node(shape, &name, number, 0))), shape.late),
            (false, true) => {
                let of = name.clone();
                let told = move |path: &str, headers: &axum::http::HeaderMap| {
                    let turn = began.elapsed().as_secs() / LIVELY_EVERY.as_secs();
                    answer(tells(node(shape, &of, number, turn as usize)))(path, headers)
                };
                late(Arc::new(told), shape.late)
            }
        };
        plugin(api, &name, "Running", backend);
    }
}

fn handle(number: usize) -> String {
    format!("volume-{number:03}")
}

/// A number that looks like chance, and is the same each time.
fn chance(a: usize, b: usize) -> usize {
    let mixed =
        (a as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
}

/// What one node tells: its share of the volumes, a copy in seven held, and on some what is out of order.
fn node(shape: Shape, name: &str, number: usize, turn: usize) -> NodeReport {
    let own = |at: usize| handle((number * 7 + at) % shape.volumes.max(1));
    let mut copies: Vec<_> = (0..shape.copies.min(shape.volumes))
        .map(|at| {
            let chance = chance(number, at);
            let size = (1_u64 << (12 + chance % 23)) + (chance as u64 * 977) % (1 << 20);
            let mut copy = copy(&own(at), size, size / 65_536 + 1);
            let held = (at + turn * (chance % 3)).is_multiple_of(7);
            if held {
                let since = timestamp(NOW_MS - (chance as u64 % 90_000) * 1000);
                copy.holders = vec![holder(&format!("pod-{number}-{at}"), Some(&since))];
            }
            copy.leftover_mounts = u64::from(!held && chance.is_multiple_of(211));
            if chance.is_multiple_of(97) {
                (copy.bytes, copy.inodes, copy.measured_at) = (None, None, None);
            }
            copy
        })
        .collect();
    if number.is_multiple_of(50) {
        copies.push(copy(&format!("left-behind-{number}"), 1 << 30, 1000));
    }
    copies.sort_by(|a, b| a.handle.cmp(&b.handle));
    let mut report = report(name, copies);
    report.refusals = refusals(number, &own(0));
    if number % 9 == 4 {
        report.trash = vec![trash(number, own(shape.copies))];
        report.trash_total = 1;
    }
    let sweep = report.sweep.get_or_insert_default();
    if number % 40 == 7 {
        sweep.stuck = 1;
        sweep.notes = vec!["a removal has failed: Device or resource busy".to_owned()];
    }
    report.store = Some(Store {
        total_bytes: 1 << 40,
        available_bytes: (1 << 39) + number as u64 * (1 << 30),
        total_inodes: 60_000_000,
        available_inodes: 58_000_000,
        measured_at: NOW.to_owned(),
    });
    report
}

/// Every other one is kept for a time.
fn trash(number: usize, handle: String) -> TrashEntry {
    let entry = TrashEntry { id: format!("t{number}"), handle, ..TrashEntry::default() };
    if number.is_multiple_of(2) {
        return entry;
    }
    let removed_at = Some(timestamp(NOW_MS - 7_200_000));
    TrashEntry { removed_at, bytes: Some(1 << 30), left_seconds: Some(79_200), ..entry }
}

fn refusals(number: usize, handle: &str) -> Vec<Refusal> {
    if number % 3 == 2 {
        return Vec::new();
    }
    let (last_s, lasts_s) = (chance(number, 1) as u64 % 3000, chance(number, 2) as u64 % 900);
    let mut one =
        refusal(handle, &format!("late-{number}"), lasts_s / 30 + 1, &timestamp(NOW_MS - last_s * 1000));
    one.first = timestamp(NOW_MS - (last_s + lasts_s) * 1000);
    vec![one]
}

fn answer(backend: Backend) -> Arc<Answer> {
    match backend {
        Backend::Answer(answer) | Backend::Late(_, answer) => answer,
        Backend::Address(_) | Backend::Hangs | Backend::Refuses => unreachable!("a plugin that tells"),
    }
}

fn late(answer: Arc<Answer>, late: Duration) -> Backend {
    if late.is_zero() { Backend::Answer(answer) } else { Backend::Late(late, answer) }
}
