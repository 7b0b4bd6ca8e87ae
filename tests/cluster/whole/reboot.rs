//! One node loses its power, and the other must not notice (C11, C40).

use crate::case::run;
use crate::living::reboot::reboot;
use crate::writer::Writer;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c40_after_a_reboot_each_pod_finds_its_copy() {
    run("c40-reboot", |case| {
        let writer = Writer::start(case, &case.cluster.first);
        let elsewhere = Writer::start(case, &case.cluster.second);
        reboot(&case.cluster.first);
        writer.came_back();
        elsewhere.noticed_nothing();
    });
}
