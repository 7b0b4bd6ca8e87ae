//! Resident memory at rest beside few and many PersistentVolumes of another driver, and how busy an idle driver is.

use crate::Bench;
use crate::api::Api;
use crate::field::Field;
use crate::figure::{Figure, Line, Unit};
use crate::idle;
use crate::process::Memory;
use crate::report::{Goal, Report};
use crate::samples::number;

/// In MiB, beside the fewest volumes and beside more.
const IDLE_GOAL: Goal = Goal::AtMost(10.0);
const GOAL: Goal = Goal::AtMost(12.0);

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "at rest, beside PersistentVolumes of another driver",
        "none; the kernel's account of the process",
    );
    let (mut now, mut peak) = (Vec::new(), Vec::new());
    for (at, &volumes) in bench.sizes.foreign_volumes.iter().enumerate() {
        let is_least = at == 0;
        let memory = measure(bench, volumes, false, report, is_least);
        let size = usize::try_from(volumes).expect("not that many");
        let what = format!("resident memory, {} foreign volumes", number(size));
        let goal = if is_least { IDLE_GOAL } else { GOAL };
        report.figure_of(what.clone(), memory.now, " MiB", Some(goal));
        report.figure_of(format!("{what}, peak"), memory.peak, " MiB", Some(goal));
        now.push((volumes as f64, memory.now));
        peak.push((volumes as f64, memory.peak));
    }
    if let Some(&most) = bench.sizes.foreign_volumes.last() {
        let memory = measure(bench, most, true, report, false);
        report.figure_of("the same, listed in pages, peak".into(), memory.peak, " MiB", Some(GOAL));
    }
    report.picture(Figure {
        name: "memory",
        title: "Resident memory beside PersistentVolumes of another driver",
        sizes: "PersistentVolumes of another driver",
        unit: Unit::MebiBytes,
        lines: vec![Line { name: "at rest".into(), points: now }, Line { name: "peak".into(), points: peak }],
    });
}

fn measure(bench: &Bench, volumes: u64, paged_only: bool, report: &mut Report, and_idle: bool) -> Memory {
    let field = Field::new();
    let api = Api::start(&field, 0);
    api.create_foreign(volumes);
    api.server.behave(|behaviour| behaviour.refuses_streamed_lists = paged_only);
    let process = field.start_driver(&bench.binary, api.kubeconfig());
    api.wait_for_watch();
    // At rest means: the list is over, and the first pass.
    std::thread::sleep(bench.sizes.rest);
    let memory = process.memory();
    if and_idle {
        idle::rows(&process, bench.sizes.idle, report);
    }
    memory
}
