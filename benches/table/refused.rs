//! A publish of a copy that another pod holds: refused, and its event queued for the API server.

use std::time::{Duration, Instant};

use tonic::Code;

use crate::Bench;
use crate::api::Api;
use crate::field::{Field, wait_until};
use crate::report::{Goal, Report};
use crate::samples::Samples;

const GOAL: Goal = Goal::AtMost(1.3);
/// Pods that wait for the copy, and are refused in turns.
const PODS: usize = 8;

pub fn section(bench: &Bench, report: &mut Report) {
    report.begin(
        "refused publish (held by another pod), its event queued",
        "a NodeGetCapabilities of the bare server, which does nothing; each on a fresh connection",
    );
    let field = Field::new();
    let api = Api::start(&field, 1);
    let _driver = field.start_driver(&bench.binary, api.kubeconfig());
    let _bare = field.start_bare();
    api.wait_for_watch();
    let (driver, bare) = (field.driver_side(), field.bare_side());
    let (mut refused, mut no_op) = (Samples::default(), Samples::default());
    bench.runtime.block_on(async {
        let held = driver.target(0, 0);
        driver.publish(&held).await.expect("a publish");
        for round in 0..bench.sizes.warm_up + bench.sizes.rounds {
            let target = driver.target(0, 1 + round % PODS);
            let began = Instant::now();
            let answer = driver.publish(&target).await;
            let answered = Instant::now();
            assert_eq!(answer.expect_err("it is held").code(), Code::FailedPrecondition);
            let before_no_op = Instant::now();
            bare.no_op().await.expect("an answer");
            if round >= bench.sizes.warm_up {
                refused.push(answered - began);
                no_op.push(before_no_op.elapsed());
            }
        }
        driver.unpublish(&held).await;
    });
    // Each pod has its event, and the server has it.
    let posted = || api.server.events().len() == PODS;
    wait_until("the events are posted", Duration::from_millis(20), posted);
    report.ratios("refused publish".into(), &refused, &no_op, GOAL);
}
