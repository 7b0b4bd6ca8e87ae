//! Publishes of different handles at the same time: how many a second, and what memory they leave behind.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::Bench;
use crate::api::Api;
use crate::client::{Side, Target};
use crate::field::Field;
use crate::figure::{Figure, Line, Unit};
use crate::report::{Goal, Report};
use crate::samples::Samples;
use crate::steps::STEPS;

const GOAL: Goal = Goal::AtLeast(0.9);
/// In MiB, when the load is over.
const MEMORY_GOAL: Goal = Goal::AtMost(16.0);
/// Batches that are not counted.
const WARM_UP: usize = 1;

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "publishes at once, each of a new handle on a fresh connection",
        "as many at once to the bare server that makes the raw mkdir, mkdir and mount; and to one that makes, with the driver's \
         own adapters, the steps that C10 to C16 ask for, decides nothing and logs nothing",
    );
    let batches = WARM_UP + bench.sizes.batches;
    let field = Field::new();
    let api = Api::start(&field, bench.sizes.at_once.iter().map(|size| size * batches).sum());
    let driver_process = field.start_driver(&bench.binary, api.kubeconfig());
    let _bare = field.start_bare();
    let _steps = field.start_server(STEPS);
    api.wait_for_watch();
    let sides = [field.driver_side(), field.bare_side(), field.server_side(STEPS)];
    let mut next = 0;
    let mut lines = ["driver", "bare server", "server that makes the steps of C10 to C16 alone"]
        .map(|side| (side, Vec::new()));
    for &size in bench.sizes.at_once {
        let mut samples: [Samples; 3] = Default::default();
        for batch in 0..batches {
            for turn in 0..sides.len() {
                let at = (batch + turn) % sides.len();
                let took = bench.runtime.block_on(publish(&sides[at], next, size));
                if batch >= WARM_UP {
                    samples[at].push(took);
                }
            }
            next += size;
        }
        let each_second = samples.map(|samples| size as f64 / samples.p50());
        for ((_, points), rate) in lines.iter_mut().zip(each_second) {
            points.push((size as f64, rate));
        }
        let [driver, limits @ ..] = each_second;
        let rate = |rate: f64| format!("{rate:.0} a second");
        for (limit, by) in
            limits.into_iter().zip(["", ", by a server that makes the steps of C10 to C16 alone"])
        {
            report.ratio(format!("{size} at once{by}"), rate(driver), rate(limit), driver / limit, GOAL);
        }
    }
    let memory = driver_process.memory();
    report.figure_of("resident memory after that".into(), memory.now, " MiB", Some(MEMORY_GOAL));
    report.figure_of("its peak".into(), memory.peak, " MiB", None);
    report.picture(Figure {
        name: "at-once",
        title: "Publishes of different handles at once",
        sizes: "publishes at once",
        unit: Unit::PerSecond,
        lines: lines.into_iter().map(|(name, points)| Line { name: name.into(), points }).collect(),
    });
}

/// How long until all of them were answered. What was mounted goes again.
async fn publish(side: &Side, first: usize, size: usize) -> Duration {
    let targets: Vec<Target> = (first..first + size).map(|number| side.target(number, number)).collect();
    let began = Instant::now();
    for answer in join_all(targets.iter().map(|target| side.publish(target))).await {
        answer.expect("a publish");
    }
    let took = began.elapsed();
    for target in &targets {
        side.unpublish(target).await;
    }
    took
}
