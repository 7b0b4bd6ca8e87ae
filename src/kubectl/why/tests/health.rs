//! What a pod's status tells of its volumes' health.

use serde_json::json;

use super::super::facts::HealthFact;
use super::super::gather::health;
use super::*;

/// A pod that runs, whose status has this of its volume.
fn running(status: &str, reason: &str) -> Facts {
    let mut facts = healthy();
    change_pod(&mut facts, |pod| {
        pod["status"]["phase"] = json!("Running");
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    });
    let [claim, status, reason, message] = ["cache", status, reason, "what it means"].map(str::to_owned);
    facts.health = vec![HealthFact { claim, status, reason, message }];
    facts
}

#[test]
fn c49_a_copy_that_is_gone_below_a_pod_that_runs_is_certain() {
    let facts = running("DataLoss", "CopyGone");
    assert!(runs(&facts));
    let finding = finds(&facts, &["VolumeHealth"]);
    assert_eq!(finding.certainty, Certainty::Certain);
    assert!(finding.evidence[0].ends_with("DataLoss: CopyGone: what it means"), "{finding:?}");
    assert!(finding.remedy.contains("Save from the pod"), "{finding:?}");
    assert!(finds(&running("Inaccessible", "StoreFailing"), &["VolumeHealth"]).remedy.contains("disk"));
    let degraded = finds(&running("Degraded", "StoreNearlyFull"), &["VolumeHealth"]);
    assert_eq!(degraded.certainty, Certainty::Note);
}

#[test]
fn c49_anothers_volume_is_not_judged() {
    let mut facts = running("DataLoss", "CopyGone");
    facts.health[0].claim = "other".into();
    assert_eq!(explain(&facts), []);
}

#[test]
fn c49_the_status_is_read_by_the_names_of_the_pods_volumes() {
    let mut pod = pod_value("build-1", "pod-uid");
    assert_eq!(health(&pod), []);
    let condition = json!({"status": "DataLoss", "reason": "CopyGone", "message": "it is gone"});
    pod["status"]["volumeHealth"] = json!([
        {"name": "data", "healthConditions": [condition]},
        {"name": "no-claim", "healthConditions": [condition]},
        {"name": "data"},
    ]);
    let [claim, status, reason, message] = ["cache", "DataLoss", "CopyGone", "it is gone"].map(str::to_owned);
    assert_eq!(health(&pod), [HealthFact { claim, status, reason, message }]);
}
