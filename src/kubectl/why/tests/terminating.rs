//! A pod that was deleted and is still there, whatever its containers ended with.

use serde_json::json;

use super::*;

/// A pod that was deleted a minute ago and is in that phase.
fn deleted(phase: &str) -> Facts {
    let mut facts = healthy();
    change_pod(&mut facts, |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T05:59:00Z");
        pod["status"]["phase"] = json!(phase);
        pod["status"]["containerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 137}});
    });
    facts
}

#[test]
fn whatever_its_phase_a_pod_that_was_deleted_is_told_as_that() {
    for phase in ["Pending", "Running", "Succeeded", "Failed"] {
        let facts = deleted(phase);
        assert!(!runs(&facts), "{phase}");
        let finding = finds(&facts, &["PodTerminating"]);
        for part in ["finalizers", "NodeUnpublishVolume", "PerNodeUnmountFailed", "restart the kubelet"] {
            assert!(finding.remedy.contains(part), "{finding:?}");
        }
        assert!(finding.remedy.contains("kubectl logs per-node-x -n per-node"), "{finding:?}");
    }
}

#[test]
fn its_finalizers_and_its_mounts_are_named() {
    let mut facts = deleted("Succeeded");
    change_pod(&mut facts, |pod| pod["metadata"]["finalizers"] = json!(["example.test/stays"]));
    let own = holder("ci/build-1", "pod-uid", 5);
    place(&mut facts).answer = Seen::Is(Answer { holders: vec![own], ..Answer::default() });
    let told = finds(&facts, &["PodTerminating"]).evidence.join("\n");
    assert!(told.contains("example.test/stays") && told.contains("the holder of cache"), "{told}");
}

#[test]
fn without_a_plugin_that_serves_nothing_is_unmounted() {
    let mut facts = deleted("Succeeded");
    place(&mut facts).plugin = Seen::Absent;
    place(&mut facts).answer = Seen::Unasked;
    let finding = finds(&facts, &["PodTerminating", "NoPluginOnNode"]);
    assert!(finding.evidence[1].contains("no plugin's pod was found for the node n1"), "{finding:?}");
    assert!(finding.remedy.starts_with("Mend the plugin on the node n1"), "{finding:?}");

    let mut facts = deleted("Succeeded");
    change(&mut place(&mut facts).plugin, |plugin| {
        plugin["status"]["conditions"][0]["status"] = json!("False");
    });
    place(&mut facts).answer = Seen::Unread;
    assert!(finds(&facts, &["PodTerminating", "PluginNotReady"]).evidence[1].contains("is not ready"));

    let mut facts = deleted("Succeeded");
    place(&mut facts).answer = Seen::Is(Answer { not_ready: vec!["no socket".into()], ..Answer::default() });
    finds(&facts, &["PodTerminating", "PluginNotReady"]);

    let mut facts = deleted("Succeeded");
    place(&mut facts).answer = Seen::Unread;
    place(&mut facts).silence = Some("no answer within 5s".into());
    let finding = finds(&facts, &["PodTerminating", "PluginNotReady"]);
    assert!(finding.evidence[1].contains("does not answer (no answer within 5s)"), "{finding:?}");
}

#[test]
fn a_pod_without_a_volume_of_the_driver_waits_for_no_plugin() {
    let mut facts = deleted("Running");
    facts.claims.clear();
    place(&mut facts).plugin = Seen::Absent;
    assert!(!finds(&facts, &["PodTerminating"]).remedy.contains("NodeUnpublishVolume"));
}
