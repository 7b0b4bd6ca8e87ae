//! Causes in other pods, and what others have said of this one.

use serde_json::{Value, json};

use super::*;

const HELD: &str = "volume cache is held on this node by ci/other: it mounts here once that pod is gone";

/// The facts with a holder of the copy, and that pod among the neighbours.
fn with_holder() -> Facts {
    let mut facts = healthy();
    let answer = Answer { holders: vec![holder("ci/other", "other-uid", 190)], ..Answer::default() };
    place(&mut facts).answer = Seen::Is(answer);
    let mut other = pod_value("other", "other-uid");
    other["status"]["phase"] = json!("Running");
    facts.neighbours = Seen::Is(vec![object(other)]);
    facts
}

fn change_neighbour(facts: &mut Facts, by: impl FnOnce(&mut Value)) {
    let Seen::Is(pods) = &mut facts.neighbours else { panic!("neighbours") };
    let mut value = serde_json::to_value(&pods[0]).expect("JSON");
    by(&mut value);
    pods[0] = object(value);
}

/// A Deployment `build`, and a ReplicaSet of it above both pods.
fn with_deployment(facts: &mut Facts, strategy: Value) {
    facts.deployment = Seen::Is(object(json!({
        "metadata": {"namespace": "ci", "name": "build"},
        "spec": {"selector": {}, "template": {}, "strategy": strategy},
    })));
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "build-5d4f", "uid": "rs"}]);
    change_pod(facts, |pod| pod["metadata"]["ownerReferences"] = owner.clone());
    if facts.neighbours.is().is_some_and(|pods| !pods.is_empty()) {
        change_neighbour(facts, |pod| {
            pod["metadata"]["ownerReferences"] = owner;
            pod["metadata"]["ownerReferences"][0]["name"] = json!("build-77aa");
        });
    }
}

/// The facts of a pod over a claim for one pod, which another pod has.
fn once_pod() -> Facts {
    let mut facts = with_holder();
    facts.place = None;
    change(&mut facts.claims[0].claim, |claim| claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]));
    change(&mut facts.claims[0].volume, |volume| volume["spec"]["accessModes"] = json!(["ReadWriteOncePod"]));
    change_pod(&mut facts, |pod| {
        pod["spec"]["nodeName"] = Value::Null;
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        }]);
    });
    facts
}

#[test]
fn c12_the_holder_is_named_with_how_long() {
    let mut facts = with_holder();
    facts.events = Seen::Is(vec![
        event("PerNodeVolumeHeld", "per-node.liken.sh", HELD, 1),
        event("FailedMount", "kubelet", &format!("rpc error: code = FailedPrecondition desc = {HELD}"), 1),
    ]);
    let finding = finds(&facts, &["Held"]);
    assert_eq!(finding.sentence, "ci/other holds the volume cache on the node n1, for 3h10m.");
    assert_eq!(
        finding.evidence[1],
        format!("event PerNodeVolumeHeld x3 60s ago from per-node.liken.sh: {HELD}")
    );
    assert!(finding.remedy.contains("kubectl delete pod other -n ci"), "{finding:?}");
    // A holder is none where it is this pod itself, or where it is another volume's.
    for (uid, handle) in [("pod-uid", "cache"), ("other-uid", "other")] {
        let mut one = holder("ci/other", uid, 1);
        one.handle = handle.into();
        place(&mut facts).answer = Seen::Is(Answer { holders: vec![one], ..Answer::default() });
        assert_eq!(explain(&facts), []);
    }
}

#[test]
fn c12_a_holder_that_is_being_deleted_is_waited_for() {
    let mut facts = with_holder();
    change_neighbour(&mut facts, |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T05:30:00Z"));
    let finding = finds(&facts, &["Held"]);
    assert!(finding.evidence.iter().any(|line| line == "that pod is being deleted, for 30m"), "{finding:?}");
    for part in ["findmnt", "PerNodeUnmountFailed", "restart the kubelet"] {
        assert!(finding.remedy.contains(part), "{finding:?}");
    }
}

#[test]
fn c15_a_holder_that_is_no_pod_any_more_is_the_kubelets_to_find() {
    let mut facts = with_holder();
    facts.neighbours = Seen::Is(Vec::new());
    assert!(finds(&facts, &["Held"]).remedy.contains("Restart the kubelet"));
    // Of another namespace nothing was asked, and unread is not gone.
    for (name, neighbours) in [("far/other", Seen::Is(Vec::new())), ("ci/other", Seen::Unread)] {
        facts.neighbours = neighbours;
        let answer = Answer { holders: vec![holder(name, "u", 1)], ..Answer::default() };
        place(&mut facts).answer = Seen::Is(answer);
        assert!(finds(&facts, &["Held"]).remedy.starts_with("Wait, or delete"));
    }
}

#[test]
fn c12_where_the_plugin_does_not_answer_its_newest_event_is_likely() {
    let mut facts = healthy();
    place(&mut facts).answer = Seen::Unread;
    facts.events = Seen::Is(vec![event("PerNodeVolumeHeld", "per-node.liken.sh", HELD, 9)]);
    let finding = finds(&facts, &["Held"]);
    assert_eq!(finding.certainty, Certainty::Likely);
    assert!(finding.sentence.contains("by ci/other"), "{finding:?}");
    facts.events = Seen::Is(vec![event("PerNodeVolumeHeld", "per-node.liken.sh", HELD, 30)]);
    assert_eq!(explain(&facts), []);
}

#[test]
fn c04_a_claim_for_one_pod_that_another_pod_has() {
    let mut facts = once_pod();
    let finding = finds(&facts, &["OncePodInUse", "Unscheduled"]);
    assert!(finding.sentence.starts_with("The pod ci/other has the claim cache"), "{finding:?}");
    for (phase, node) in [("Succeeded", json!("n1")), ("Failed", json!("n1")), ("Pending", Value::Null)] {
        change_neighbour(&mut facts, |pod| {
            pod["status"]["phase"] = json!(phase);
            pod["spec"]["nodeName"] = node;
        });
        finds(&facts, &["Unscheduled"]);
    }
}

#[test]
fn c04_a_rolling_update_over_a_claim_for_one_pod() {
    let rolling = |surge: Value| json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}});
    for strategy in [Value::Null, json!({"type": "RollingUpdate"}), rolling(json!(1)), rolling(json!("25%"))]
    {
        let mut facts = once_pod();
        with_deployment(&mut facts, strategy);
        let finding = finds(&facts, &["RollingUpdateOncePod", "OncePodInUse", "Unscheduled"]);
        assert!(finding.remedy.contains("\"type\":\"Recreate\""), "{finding:?}");
    }
    for strategy in [json!({"type": "Recreate"}), rolling(json!(0)), rolling(json!("0%"))] {
        let mut facts = once_pod();
        with_deployment(&mut facts, strategy);
        finds(&facts, &["OncePodInUse", "Unscheduled"]);
    }
    // Where no pod of it is in the way it is worth knowing and no reason.
    let mut facts = once_pod();
    facts.neighbours = Seen::Is(Vec::new());
    with_deployment(&mut facts, Value::Null);
    finds(&facts, &["Unscheduled", "RollingUpdateOncePod"]);
}

#[test]
fn c12_a_rolling_update_that_brought_both_pods_to_one_node() {
    let mut facts = with_holder();
    with_deployment(&mut facts, json!({"type": "RollingUpdate"}));
    let finding = finds(&facts, &["RollingUpdateSurge", "Held"]);
    assert!(finding.remedy.contains("\"maxSurge\":0"), "{finding:?}");
    // A holder of another Deployment is no such case.
    change_neighbour(&mut facts, |pod| pod["metadata"]["ownerReferences"][0]["name"] = json!("other-77aa"));
    finds(&facts, &["Held"]);
}

#[test]
fn the_schedulers_reasons_are_passed_on() {
    let mut facts = pending();
    facts.claims.clear();
    change_pod(&mut facts, |pod| {
        pod["status"]["conditions"][0]["reason"] = json!("SchedulingGated");
        pod["status"]["conditions"][0]["message"] =
            json!("Scheduling is blocked due to non-empty scheduling gates");
    });
    let finding = finds(&facts, &["Unscheduled"]);
    assert!(finding.evidence[0].contains("SchedulingGated: Scheduling is blocked"), "{finding:?}");
    change_pod(&mut facts, |pod| pod["status"]["conditions"] = json!([]));
    assert_eq!(finds(&facts, &["Unscheduled"]).certainty, Certainty::Likely);
}

#[test]
fn c30_the_drivers_refusals_are_passed_on_with_their_text() {
    let text = "the target path is not below --kubelet-dir";
    let mut facts = healthy();
    facts.events = Seen::Is(vec![event("PerNodeVolumeRefused", "per-node.liken.sh", text, 2)]);
    let finding = finds(&facts, &["Refused"]);
    assert!(finding.sentence.contains(text) && finding.certainty == Certainty::Certain, "{finding:?}");
    assert!(
        finding.remedy.contains("and then delete the pod"),
        "the kubelet looks at no mended volume: {finding:?}"
    );
    facts.events = Seen::Is(vec![event("PerNodeVolumeRefused", "per-node.liken.sh", text, 40)]);
    assert_eq!(finds(&facts, &["Refused"]).certainty, Certainty::Likely);
}

#[test]
fn c30_a_mount_that_failed_is_passed_on_with_its_step() {
    let text = "could not make the copy: No space left on device";
    let mut facts = healthy();
    facts.events = Seen::Is(vec![
        event("PerNodeMountFailed", "per-node.liken.sh", "an older one", 5),
        event("PerNodeMountFailed", "per-node.liken.sh", text, 1),
    ]);
    let finding = finds(&facts, &["MountFailed"]);
    assert!(finding.sentence.contains(text), "{finding:?}");
}

#[test]
fn containers_that_do_not_run_are_told_apart_from_volumes() {
    let container = |facts: &mut Facts, ready: bool, state: Value, last: Value| {
        change_pod(facts, |pod| {
            pod["status"]["containerStatuses"] = json!([{
                "name": "main", "image": "", "imageID": "", "ready": ready, "restartCount": 1, "state": state,
                "lastState": last,
            }]);
        });
    };
    let mut facts = healthy();
    let pull = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
    container(&mut facts, false, pull, json!({}));
    assert!(finds(&facts, &["Container"]).evidence[0].contains("no such image"));
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    container(&mut facts, false, back_off, json!({"terminated": {"exitCode": 3}}));
    assert!(finds(&facts, &["Container"]).evidence[1].contains("ended with 3"));
    container(&mut facts, false, json!({"terminated": {"exitCode": 2, "reason": "Error"}}), json!({}));
    finds(&facts, &["Container"]);
    container(&mut facts, false, json!({"running": {}}), json!({}));
    change_pod(&mut facts, |pod| pod["status"]["phase"] = json!("Running"));
    assert_eq!(finds(&facts, &["Container"]).certainty, Certainty::Likely);
}

#[test]
fn the_kubelets_events_are_passed_on_where_the_driver_has_said_nothing() {
    let mut facts = healthy();
    let unknown = "driver name per-node.liken.sh not found in the list of registered CSI drivers";
    facts.events = Seen::Is(vec![
        event("FailedMount", "kubelet", unknown, 1),
        event("FailedMount", "kubelet", "an older one", 5),
        event("Scheduled", "default-scheduler", "assigned", 6),
        event("FailedAttachVolume", "attachdetach-controller", "long ago", 60),
    ]);
    let finding = finds(&facts, &["KubeletEvent"]);
    assert!(finding.evidence[0].ends_with(unknown) && finding.certainty == Certainty::Likely, "{finding:?}");
}

#[test]
fn an_attachment_that_nobody_waits_for_any_more_is_not_told() {
    let text = "AttachVolume.Attach failed for volume \"cache\" : timed out waiting for external-attacher";
    let mut facts = healthy();
    facts.events = Seen::Is(vec![event("FailedAttachVolume", "attachdetach-controller", text, 2)]);
    assert_eq!(explain(&facts), []);
    // Another driver's volume has an attachment of its own, and while the object is wrong it is what the event says.
    let other = text.replace("cache", "other");
    facts.events = Seen::Is(vec![event("FailedAttachVolume", "attachdetach-controller", &other, 2)]);
    finds(&facts, &["KubeletEvent"]);
    facts.events = Seen::Is(vec![event("FailedAttachVolume", "attachdetach-controller", text, 2)]);
    change(&mut facts.csi_driver, |object| object["spec"]["attachRequired"] = json!(true));
    finds(&facts, &["CsiDriverWrong", "KubeletEvent"]);
}
