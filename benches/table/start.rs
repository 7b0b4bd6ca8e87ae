//! From starting the process to its first answer, with many copies on the node that pods hold.

use std::time::{Duration, Instant};

use crate::Bench;
use crate::api::Api;
use crate::field::{Field, wait_until};
use crate::figure::{Figure, Line, Unit};
use crate::report::{Goal, Report};
use crate::samples::{Samples, number};

/// In ms.
const GOAL: Goal = Goal::AtMost(50.0);
/// Between two tries to reach the socket.
const TRY_EVERY: Duration = Duration::from_micros(200);

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "start to the first answered RPC, after a SIGKILL",
        "reading /proc/self/mountinfo once, in the same namespace",
    );
    let field = Field::new();
    let most = bench.sizes.held.iter().copied().max().unwrap_or(0);
    let api = Api::start(&field, most);
    let mut lines = [("driver", Vec::new()), ("one mountinfo read", Vec::new())];
    let mut process = Some(field.start_driver(&bench.binary, api.kubeconfig()));
    let side = field.driver_side();
    let mut published = 0;
    for &held in bench.sizes.held {
        for volume in published..held {
            bench.runtime.block_on(side.publish(&side.target(volume, volume))).expect("a publish");
        }
        published = held;
        let (mut starts, mut reads) = (Samples::default(), Samples::default());
        for _ in 0..bench.sizes.starts {
            // The one before is gone, and with it its lock.
            drop(process.take());
            let began = Instant::now();
            let started = field.spawn_driver(&bench.binary, api.kubeconfig());
            wait_until("the first answer", TRY_EVERY, || {
                field.takes_calls() && bench.runtime.block_on(side.no_op()).is_ok()
            });
            starts.push(began.elapsed());
            process = Some(started);
            let began = Instant::now();
            let table = std::fs::read("/proc/self/mountinfo").expect("mountinfo");
            reads.push(began.elapsed());
            let lines = table.iter().filter(|byte| **byte == b'\n').count();
            assert!(lines >= held, "{held} copies are held, and {lines} mounts are there");
        }
        let what = format!("start with {} copies, all held", number(held));
        report.difference_ms(what, starts.p50(), reads.p50(), GOAL);
        for ((_, points), seconds) in lines.iter_mut().zip([starts.p50(), reads.p50()]) {
            points.push((held as f64, seconds));
        }
    }
    report.picture(Figure {
        name: "start",
        title: "Start to the first answer, by the copies that pods hold",
        sizes: "held copies",
        unit: Unit::Seconds,
        lines: lines.into_iter().map(|(name, points)| Line { name: name.into(), points }).collect(),
    });
}
