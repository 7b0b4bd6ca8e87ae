//! A pod's first mount and its unmount, as a kubelet makes them, beside few and many foreign mounts, with tonic's client and
//! with the kubelet's own.

use std::time::Instant;

use crate::Bench;
use crate::api::Api;
use crate::client::Side;
use crate::field::Field;
use crate::figure::{Figure, Line, Unit};
use crate::grpc_go::{self, Times};
use crate::report::{Goal, Report};
use crate::samples::{Samples, number};

const CLIENTS: [(&str, Goal); 2] = [("grpc-go", Goal::AtMost(1.10)), ("tonic", Goal::AtMost(1.25))];

/// Both sides, as one client saw them beside one number of mounts.
struct Measured {
    mounts: usize,
    driver: Times,
    bare: Times,
}

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "first mount (4 NodeGetCapabilities, 1 NodePublishVolume of a new handle, a fresh connection for each) and unmount",
        "the same calls to a tonic server that makes the raw mkdir, mkdir and mount, or umount2 and rmdir, and nothing else",
    );
    let program = grpc_go::build();
    let mut by_client = [Vec::new(), Vec::new()];
    for &mounts in bench.sizes.mounts {
        for (measured, (driver, bare)) in by_client.iter_mut().zip(measure(bench, mounts, &program)) {
            measured.push(Measured { mounts, driver, bare });
        }
    }
    for ((client, goal), measured) in CLIENTS.iter().zip(&by_client) {
        for Measured { mounts, driver, bare } in measured {
            let what = |call| format!("{call}, {client}, {} mounts", number(*mounts));
            report.ratios(what("first mount"), &driver.mount, &bare.mount, *goal);
            report.ratios(what("unmount"), &driver.unmount, &bare.unmount, *goal);
        }
    }
    let [grpc_go, _] = &by_client;
    let title = "First mount beside foreign mounts, with the kubelet's client";
    report.picture(picture("mount", title, grpc_go, |times| &times.mount));
    let title = "Unmount beside foreign mounts, with the kubelet's client";
    report.picture(picture("unmount", title, grpc_go, |times| &times.unmount));
}

fn picture(name: &'static str, title: &'static str, all: &[Measured], of: fn(&Times) -> &Samples) -> Figure {
    let line = |name: &str, value: &dyn Fn(&Measured) -> f64| Line {
        name: name.into(),
        points: all.iter().map(|one| (one.mounts as f64, value(one))).collect(),
    };
    let lines = vec![
        line("driver, p50", &|one| of(&one.driver).p50()),
        line("bare server, p50", &|one| of(&one.bare).p50()),
        line("driver, p99", &|one| of(&one.driver).p99()),
        line("bare server, p99", &|one| of(&one.bare).p99()),
    ];
    Figure { name, title, sizes: "foreign mounts", unit: Unit::Seconds, lines }
}

/// What each client took, in the order of `CLIENTS`.
fn measure(bench: &Bench, mounts: usize, program: &std::path::Path) -> [(Times, Times); 2] {
    let field = Field::new();
    field.mount_foreign(mounts);
    let (warm_up, rounds) = (bench.sizes.warm_up, bench.sizes.rounds);
    let each = warm_up + rounds;
    let api = Api::start(&field, 2 * each);
    let _driver = field.start_driver(&bench.binary, api.kubeconfig());
    let _bare = field.start_bare();
    api.wait_for_watch();
    let (driver, bare) = (field.driver_side(), field.bare_side());
    let arguments = [driver.argument("driver"), bare.argument("bare")];
    let [go_driver, go_bare] = grpc_go::run(program, warm_up, rounds, 0, arguments);
    let tonic = bench.runtime.block_on(async {
        let (mut of_driver, mut of_bare) = (Times::default(), Times::default());
        for round in 0..each {
            let counts = round >= warm_up;
            let volume = each + round;
            // Who is first changes, so that nobody always finds what the other left in the caches.
            if round % 2 == 0 {
                take(&driver, volume, counts, &mut of_driver).await;
                take(&bare, volume, counts, &mut of_bare).await;
            } else {
                take(&bare, volume, counts, &mut of_bare).await;
                take(&driver, volume, counts, &mut of_driver).await;
            }
        }
        (of_driver, of_bare)
    });
    [(go_driver, go_bare), tonic]
}

async fn take(side: &Side, volume: usize, counts: bool, times: &mut Times) {
    let target = side.target(volume, volume);
    let began = Instant::now();
    side.mount(&target).await;
    let mounted = Instant::now();
    side.unpublish(&target).await;
    if counts {
        times.mount.push(mounted - began);
        times.unmount.push(mounted.elapsed());
    }
}
