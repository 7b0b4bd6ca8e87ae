//! Removing a copy of few and many files, from its volume's proven deletion to an empty trash.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Bench;
use crate::api::Api;
use crate::client::handle;
use crate::field::{Field, wait_for};
use crate::figure::{Figure, Line, Unit};
use crate::report::{Goal, Report};
use crate::samples::{Samples, number, time};
use crate::tree;

const GOAL: Goal = Goal::AtMost(1.0);
/// Between two looks at what is left.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// Longer than that nothing takes.
const LIMIT: Duration = Duration::from_secs(900);

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "removal of a copy of empty files, 1,000 a directory, from the rename into the trash until the trash is empty",
        "`rm -rf` of the same tree, made beside it; a sync before each",
    );
    let field = Field::new();
    let api = Api::start(&field, 0);
    let _driver = field.start_driver(&bench.binary, api.kubeconfig());
    field.wait_for_marker();
    api.wait_for_watch();
    let mut lines = [("driver", Vec::new()), ("rm -rf", Vec::new())];
    let mut next = 0;
    for &(files, rounds) in bench.sizes.removal {
        let (mut driver, mut rm) = (Samples::default(), Samples::default());
        for round in 0..rounds {
            let number = next;
            next += 1;
            let (ours, theirs) = (field.path("ours"), field.path("theirs"));
            tree::make(&ours, files);
            tree::make(&theirs, files);
            let take_rm = |samples: &mut Samples| {
                nix::unistd::sync();
                samples.push(remove_by_rm(&theirs));
            };
            if round % 2 == 0 {
                take_rm(&mut rm);
            }
            nix::unistd::sync();
            driver.push(remove_by_driver(&field, &api, number, &ours));
            if round % 2 == 1 {
                take_rm(&mut rm);
            }
        }
        let what = format!("removal of {} files, p50 of {rounds}", number(files));
        let (driver, rm) = (driver.p50(), rm.p50());
        report.ratio(what, time(driver), time(rm), driver / rm, GOAL);
        for ((_, points), seconds) in lines.iter_mut().zip([driver, rm]) {
            points.push((files as f64, seconds));
        }
    }
    report.picture(Figure {
        name: "removal",
        title: "Removing a copy by its files",
        sizes: "files",
        unit: Unit::Seconds,
        lines: lines.into_iter().map(|(name, points)| Line { name: name.into(), points }).collect(),
    });
}

/// Makes the tree a copy whose volume is deleted, and waits until it is on its way out; nothing of it need be gone yet.
pub fn begin_removal(field: &Field, api: &Api, number: usize, tree: &Path) {
    let copy = field.copy(&handle(number));
    api.create(&handle(number));
    std::fs::rename(tree, &copy).expect("the copy");
    api.delete(&handle(number));
    wait_for("the copy goes", LIMIT, LOOK_EVERY, &mut || !copy.exists());
}

/// Whether nothing is left to remove.
pub fn trash_is_empty(field: &Field) -> bool {
    let mut trash = std::fs::read_dir(field.path("store/trash")).expect("the trash");
    trash.next().is_none()
}

fn remove_by_driver(field: &Field, api: &Api, number: usize, tree: &Path) -> Duration {
    begin_removal(field, api, number, tree);
    let began = Instant::now();
    wait_for("the trash empties", LIMIT, LOOK_EVERY, &mut || trash_is_empty(field));
    began.elapsed()
}

fn remove_by_rm(tree: &Path) -> Duration {
    let began = Instant::now();
    let removed = Command::new("rm").arg("-rf").arg(tree).status();
    assert!(removed.expect("rm runs").success(), "rm failed");
    began.elapsed()
}
