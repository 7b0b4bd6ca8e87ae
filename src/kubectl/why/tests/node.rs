//! Causes in the installation and on the pod's node.

use serde_json::json;

use super::*;

#[test]
fn a_missing_csi_driver_object() {
    let mut facts = healthy();
    facts.csi_driver = Seen::Absent;
    let finding = finds(&facts, &["CsiDriverMissing"]);
    assert_eq!((finding.remedy.as_str(), finding.certainty), (crate::csi_driver::MAKE, Certainty::Certain));
    // A claim that is not bound yet has a volume of the driver all the same.
    let mut facts = pending();
    facts.csi_driver = Seen::Absent;
    assert!(explain(&facts).iter().any(|one| one.cause == "CsiDriverMissing"));
}

#[test]
fn a_csi_driver_object_with_a_wrong_field() {
    let mut facts = healthy();
    change(&mut facts.csi_driver, |object| object["spec"]["attachRequired"] = json!(true));
    let finding = finds(&facts, &["CsiDriverWrong"]);
    assert_eq!(finding.certainty, Certainty::Certain);
    assert!(
        finding.sentence.contains("attachRequired") && finding.remedy.contains("delete csidriver"),
        "{finding:?}"
    );
    change(&mut facts.csi_driver, |object| {
        object["spec"]["attachRequired"] = json!(false);
        object["spec"]["podInfoOnMount"] = json!(false);
    });
    assert_eq!(finds(&facts, &["CsiDriverWrong"]).certainty, Certainty::Note);
}

#[test]
fn a_node_that_is_not_ready_or_gone() {
    let mut facts = healthy();
    change(&mut place(&mut facts).node, |node| {
        node["status"]["conditions"][0] = json!({"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped"});
    });
    let finding = finds(&facts, &["NodeNotReady"]);
    assert!(finding.evidence[0].contains("Unknown: NodeStatusUnknown: Kubelet stopped"), "{finding:?}");
    place(&mut facts).node = Seen::Absent;
    finds(&facts, &["NodeNotReady"]);
}

#[test]
fn no_plugin_on_the_node() {
    let mut facts = healthy();
    place(&mut facts).plugin = Seen::Absent;
    place(&mut facts).answer = Seen::Unasked;
    // That the kubelet no longer knows the driver follows from it and is not told twice.
    change(&mut place(&mut facts).csi_node, |csi_node| csi_node["spec"]["drivers"] = json!([]));
    finds(&facts, &["NoPluginOnNode"]);
}

#[test]
fn c44_a_plugin_that_does_not_start_is_quoted() {
    let mut facts = healthy();
    let last = "per-node: --store /var/lib/per-node is not writable: Read-only file system";
    change(&mut place(&mut facts).plugin, |plugin| {
        plugin["status"]["conditions"][0]["status"] = json!("False");
        plugin["status"]["containerStatuses"] = json!([{
            "name": "per-node", "image": "", "imageID": "", "ready": false, "restartCount": 4,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
            "lastState": {"terminated": {"exitCode": 1, "message": format!("a line\n{last}\n")}},
        }]);
    });
    place(&mut facts).answer = Seen::Unread;
    change(&mut place(&mut facts).csi_node, |csi_node| csi_node["spec"]["drivers"] = json!([]));
    let finding = finds(&facts, &["PluginNotReady"]);
    assert!(finding.evidence.iter().any(|line| line.ends_with(last)), "{finding:?}");
    assert!(finding.evidence.iter().any(|line| line.contains("CrashLoopBackOff")), "{finding:?}");
    assert!(finding.remedy.ends_with("kubectl logs per-node-x -n per-node"), "{finding:?}");
}

#[test]
fn c43_a_plugin_that_says_why_it_is_not_ready() {
    let mut facts = healthy();
    let said = "the kubelet has not registered the driver yet";
    place(&mut facts).answer = Seen::Is(Answer { not_ready: vec![said.into()], ..Answer::default() });
    let finding = finds(&facts, &["PluginNotReady"]);
    assert!(finding.evidence.iter().any(|line| line.contains(said)), "{finding:?}");
}

#[test]
fn c43_a_driver_that_the_kubelet_does_not_know() {
    let mut facts = healthy();
    change(&mut place(&mut facts).csi_node, |csi_node| {
        csi_node["spec"]["drivers"][0]["name"] = json!("other.example")
    });
    finds(&facts, &["DriverNotRegistered"]);
    place(&mut facts).csi_node = Seen::Absent;
    let finding = finds(&facts, &["DriverNotRegistered"]);
    assert!(finding.remedy.ends_with("kubectl per-node doctor n1"), "{finding:?}");
}

#[test]
fn c22_removals_that_wait_for_a_person_are_a_note() {
    let mut facts = healthy();
    let waiting = Some("the API server's revision went back".to_owned());
    place(&mut facts).answer = Seen::Is(Answer { waiting, ..Answer::default() });
    let finding = finds(&facts, &["WaitsForConfirmation"]);
    assert_eq!(
        (finding.certainty, finding.remedy.as_str()),
        (Certainty::Note, "kubectl per-node confirm --node n1")
    );
}
