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
    let finding = finds(&facts, &["NoPluginOnNode"]);
    assert_eq!(finding.certainty, Certainty::Certain);
    place(&mut facts).csi_node = Seen::Absent;
    assert_eq!(finds(&facts, &["NoPluginOnNode"]).certainty, Certainty::Certain);
}

#[test]
fn no_plugin_in_the_namespace_that_was_looked_at_beside_a_kubelet_that_knows_the_driver() {
    let mut facts = healthy();
    facts.plugin_namespace = "elsewhere".into();
    place(&mut facts).plugin = Seen::Absent;
    let finding = finds(&facts, &["NoPluginOnNode"]);
    assert_eq!(finding.certainty, Certainty::Likely);
    assert!(finding.sentence.ends_with("is in the namespace elsewhere."), "{finding:?}");
    assert!(finding.evidence[1].contains("the CSINode n1 lists per-node.liken.sh"), "{finding:?}");
    assert!(finding.remedy.contains("--plugin-namespace"), "{finding:?}");
    place(&mut facts).csi_node = Seen::Unread;
    let finding = finds(&facts, &["NoPluginOnNode"]);
    assert_eq!((finding.certainty, finding.evidence.len()), (Certainty::Likely, 1), "{finding:?}");
}

#[test]
fn a_plugin_that_is_ready_and_does_not_answer_is_likely() {
    let mut facts = healthy();
    place(&mut facts).answer = Seen::Unread;
    place(&mut facts).silence = Some("no answer within 5s".into());
    let finding = finds(&facts, &["PluginNotReady"]);
    assert_eq!(finding.certainty, Certainty::Likely);
    assert_eq!(finding.sentence, "The plugin on the node n1 does not answer.");
    assert!(finding.remedy.ends_with("kubectl delete pod per-node-x -n per-node"), "{finding:?}");
}

#[test]
fn a_plugin_whose_image_cannot_be_pulled_has_no_log() {
    let mut facts = healthy();
    change(&mut place(&mut facts).plugin, |plugin| {
        plugin["status"]["phase"] = json!("Pending");
        plugin["status"]["conditions"][0]["status"] = json!("False");
        plugin["status"]["containerStatuses"] = json!([{
            "name": "per-node", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}},
        }]);
    });
    place(&mut facts).answer = Seen::Unasked;
    let finding = finds(&facts, &["PluginNotReady"]);
    assert!(finding.evidence.iter().any(|line| line.contains("ErrImagePull: no such image")), "{finding:?}");
    assert!(finding.remedy.ends_with("kubectl describe pod per-node-x -n per-node"), "{finding:?}");
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
    assert_eq!(finding.certainty, Certainty::Note);
    assert!(finding.remedy.ends_with("kubectl per-node confirm --node n1 --show"), "{finding:?}");
}
