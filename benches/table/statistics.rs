//! NodeGetVolumeStats of copies of few and many files: once they are known, and the longest that anybody ever waited.

use std::time::{Duration, Instant};

use crate::Bench;
use crate::api::Api;
use crate::client::{Side, Target};
use crate::field::{Field, wait_for};
use crate::figure::{Figure, Line, Unit};
use crate::report::{Goal, Report};
use crate::samples::{Samples, number};
use crate::tree;

const GOAL: Goal = Goal::AtMost(1.3);
/// In seconds.
const LONGEST_GOAL: Goal = Goal::AtMost(1.0);
/// Between two questions, until all is known.
const BETWEEN: Duration = Duration::from_millis(50);
/// Longer than that no walk may take.
const KNOWN_LIMIT: Duration = Duration::from_secs(900);

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "NodeGetVolumeStats",
        "a NodeGetCapabilities of the bare server, which does nothing; each on a fresh connection",
    );
    let mut lines = [("once known", Vec::new()), ("no-op", Vec::new()), ("longest ever", Vec::new())];
    for &files in bench.sizes.statistics {
        let measured = measure(bench, files);
        let what = |which| format!("statistics of {} files, {which}", number(files));
        report.ratios(what("once known"), &measured.known, &measured.no_op, GOAL);
        report.figure_of(what("longest ever"), measured.longest, " s", Some(LONGEST_GOAL));
        let values = [measured.known.p50(), measured.no_op.p50(), measured.longest];
        for ((_, points), value) in lines.iter_mut().zip(values) {
            points.push((files as f64, value));
        }
    }
    report.picture(Figure {
        name: "statistics",
        title: "NodeGetVolumeStats by the files of the copy (p50)",
        sizes: "files",
        unit: Unit::Seconds,
        lines: lines.into_iter().map(|(name, points)| Line { name: name.into(), points }).collect(),
    });
}

struct Measured {
    known: Samples,
    no_op: Samples,
    /// Of all calls from the first on, in seconds.
    longest: f64,
}

fn measure(bench: &Bench, files: usize) -> Measured {
    let field = Field::new();
    let api = Api::start(&field, 1);
    let _driver = field.start_driver(&bench.binary, api.kubeconfig());
    let _bare = field.start_bare();
    // Made elsewhere and moved in whole, so that no walk sees a part of it.
    let made = field.path("made");
    let inodes = i64::try_from(tree::make(&made, files)).expect("not that many");
    let (driver, bare) = (field.driver_side(), field.bare_side());
    let target = driver.target(0, 0);
    std::fs::rename(&made, field.copy(&target.handle)).expect("the copy");
    bench.runtime.block_on(driver.publish(&target)).expect("a publish");
    let mut every = Samples::default();
    let ask = |every: &mut Samples| bench.runtime.block_on(asked(&driver, &target, every));
    wait_for("the copy is counted", KNOWN_LIMIT, BETWEEN, &mut || ask(&mut every) == inodes);
    let (mut known, mut no_op) = (Samples::default(), Samples::default());
    for round in 0..bench.sizes.warm_up + bench.sizes.rounds {
        let mut one = Samples::default();
        ask(&mut one);
        let began = Instant::now();
        bench.runtime.block_on(bare.no_op()).expect("an answer");
        let took = began.elapsed();
        every.push(Duration::from_secs_f64(one.longest()));
        if round >= bench.sizes.warm_up {
            known.push(Duration::from_secs_f64(one.longest()));
            no_op.push(took);
        }
    }
    bench.runtime.block_on(driver.unpublish(&target));
    Measured { known, no_op, longest: every.longest() }
}

async fn asked(side: &Side, target: &Target, samples: &mut Samples) -> i64 {
    let began = Instant::now();
    let inodes = side.used_inodes(target).await;
    samples.push(began.elapsed());
    inodes
}
