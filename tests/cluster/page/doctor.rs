//! `kubectl per-node doctor` in a cluster in which all is well.

use crate::case::run;
use crate::tool::{tool, tool_json};
use crate::wait::wait_for;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn doctor_finds_no_fault_on_either_node_of_a_healthy_cluster() {
    run("doctor-healthy", |case| {
        for node in case.cluster.nodes() {
            // Beside cases that let a plugin fail to see its volumes for a moment.
            let report = wait_for("a report without a fault", || {
                let report = tool_json(&["doctor", node.name]);
                let lines = report["lines"].as_array()?;
                let faults: Vec<_> = lines.iter().filter(|line| line["verdict"] == "fault").collect();
                if !faults.is_empty() {
                    println!("{faults:?}");
                }
                faults.is_empty().then_some(report)
            });
            assert_eq!(report["unread"].as_array().map(Vec::len), Some(0), "{report}");
            for check in ["Rights", "Plugin", "Answer", "Readiness", "CsiNode", "NodeAnnotation", "Clock"] {
                let lines = report["lines"].as_array().expect("lines");
                let line = lines.iter().find(|line| line["check"] == check).expect("the line");
                assert_eq!(line["verdict"], "ok", "{line}");
            }
        }
        let table = tool(&["doctor"]);
        assert!(String::from_utf8_lossy(&table.stdout).contains("2 nodes"), "{table:?}");
    });
}
