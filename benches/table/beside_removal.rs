//! Publishes of other pods while a large copy is removed.

use std::time::Instant;

use crate::Bench;
use crate::api::Api;
use crate::client::Side;
use crate::field::Field;
use crate::removal::{begin_removal, trash_is_empty};
use crate::report::{Goal, Report};
use crate::samples::{Samples, number};
use crate::tree;

/// Of the p99.
const GOAL: Goal = Goal::AtMost(2.0);
/// Volumes that pods mount meanwhile, in turns.
const VOLUMES: usize = 16;

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "publishes of other pods while a copy is removed (fresh connections)",
        "the same with no removal: half of them before it, half after it",
    );
    let field = Field::new();
    let api = Api::start(&field, VOLUMES);
    let _driver = field.start_driver(&bench.binary, api.kubeconfig());
    field.wait_for_marker();
    api.wait_for_watch();
    let made = field.path("made");
    tree::make(&made, bench.sizes.beside_removal);
    nix::unistd::sync();
    let side = field.driver_side();
    let (mut during, mut without, mut warm_up) = Default::default();
    let half = bench.sizes.beside_rounds.div_ceil(2);
    let take = |rounds: usize, samples: &mut Samples| {
        (0..rounds).for_each(|round| bench.runtime.block_on(publish(&side, round % VOLUMES, samples)));
    };
    take(VOLUMES + bench.sizes.warm_up, &mut warm_up);
    take(half, &mut without);
    begin_removal(&field, &api, VOLUMES, &made);
    while !trash_is_empty(&field) {
        take(1, &mut during);
    }
    take(half, &mut without);
    let files = number(bench.sizes.beside_removal);
    let what = format!("{} publishes beside a removal of {files} files", during.count());
    report.ratio_of_p99(what, &during, &without, GOAL);
}

async fn publish(side: &Side, number: usize, samples: &mut Samples) {
    let target = side.target(number, number);
    let began = Instant::now();
    side.publish(&target).await.expect("a publish");
    samples.push(began.elapsed());
    side.unpublish(&target).await;
}
