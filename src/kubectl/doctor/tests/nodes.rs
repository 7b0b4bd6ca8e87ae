//! What each node has.

use serde_json::json;

use super::*;

/// Changes an object of `n2` by its JSON.
#[track_caller]
fn changed<T: DeserializeOwned + serde::Serialize>(found: &T, change: impl FnOnce(&mut Value)) -> T {
    let mut value = serde_json::to_value(found).expect("JSON");
    change(&mut value);
    object(value)
}

fn change_node(facts: &mut Facts, change: impl FnOnce(&mut Value)) {
    let of_node = n2(facts);
    of_node.node = changed(&of_node.node, change);
}

#[track_caller]
fn finds_on_n2(facts: &Facts, verdict: Verdict, check: &str) -> Line {
    let line = finds(facts, verdict, check);
    assert_eq!(line.node.as_deref(), Some("n2"), "{line:?}");
    line
}

#[test]
fn every_node_has_a_plugin_that_is_ready() {
    let mut facts = healthy();
    n2(&mut facts).plugin = Seen::Absent;
    n2(&mut facts).heard = Heard::Unasked;
    finds_on_n2(&facts, Verdict::Fault, "Plugin");
    // A node that the DaemonSet leaves out on purpose is worth knowing and no fault.
    let Seen::Is(daemon_sets) = &mut facts.daemon_sets else { panic!("a DaemonSet") };
    daemon_sets[0] = changed(&daemon_sets[0], |one| {
        one["spec"]["template"]["spec"]["nodeSelector"]["disk"] = json!("large");
    });
    let line = finds_on_n2(&facts, Verdict::Warning, "Plugin");
    assert!(line.says.contains("nodeSelector"), "{line:?}");
}

#[test]
fn c44_a_plugin_that_is_not_ready_is_quoted() {
    let mut facts = healthy();
    n2(&mut facts).plugin = Seen::Is(object(json!({
        "metadata": {"name": "per-node-x"},
        "status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{
                "name": "per-node", "image": "", "imageID": "", "ready": false, "restartCount": 1,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "message": "per-node: --store /x is not writable"}},
            }],
        },
    })));
    n2(&mut facts).heard = Heard::Unasked;
    let line = finds_on_n2(&facts, Verdict::Fault, "Plugin");
    assert!(
        line.says.contains("CrashLoopBackOff") && line.says.contains("--store /x is not writable"),
        "{line:?}"
    );
}

#[test]
fn a_plugin_that_does_not_answer_is_a_warning_with_why() {
    let mut facts = healthy();
    for (is_late, repair) in [(true, "it hangs: delete the pod"), (false, "--http-copies")] {
        n2(&mut facts).heard = Heard::Silent { why: "the reason".into(), is_late };
        let line = finds_on_n2(&facts, Verdict::Warning, "Answer");
        assert_eq!(line.says, "the reason");
        assert!(line.repair.as_ref().is_some_and(|told| told.contains(repair)), "{line:?}");
    }
    // The kubelet knows nothing of it either, and its word on that is not there to be read.
    n2(&mut facts).csi_node = Seen::Absent;
    let lines = examine(&facts);
    let line = lines.iter().find(|line| line.check == "CsiNode" && line.verdict == Verdict::Fault);
    let repair = line.and_then(|line| line.repair.as_deref()).unwrap_or_default();
    assert!(repair.contains("kubectl logs per-node-n2 -n per-node"), "{line:?}");
}

#[test]
fn what_follows_from_a_plugin_that_is_down_is_not_told_beside_it() {
    for (is_late, repair) in
        [(true, "kubectl -n per-node delete pod per-node-n2"), (false, "kubectl logs per-node-n2")]
    {
        let mut facts = healthy();
        n2(&mut facts).plugin = n2(&mut facts).plugin.and_then(|plugin| {
            Seen::Is(changed(plugin, |pod| pod["status"]["conditions"][0]["status"] = json!("False")))
        });
        n2(&mut facts).heard = Heard::Silent { why: "no answer".into(), is_late };
        change_node(&mut facts, |node| node["metadata"]["annotations"] = Value::Null);
        n2(&mut facts).csi_node =
            Seen::Is(object(json!({"metadata": {"name": "n2"}, "spec": {"drivers": []}})));
        let line = finds_on_n2(&facts, Verdict::Fault, "Plugin");
        assert!(line.repair.as_ref().is_some_and(|told| told.contains(repair)), "{line:?}");
    }
}

#[test]
fn why_the_daemon_sets_pod_could_not_be_made_is_quoted() {
    let event = |of: &str, message: &str, at: &str| {
        object(json!({
            "metadata": {}, "involvedObject": {"kind": "DaemonSet", "name": of}, "reason": "FailedCreate",
            "message": message, "lastTimestamp": at, "source": {"component": "daemonset-controller"},
        }))
    };
    let mut facts = healthy();
    n2(&mut facts).plugin = Seen::Absent;
    n2(&mut facts).heard = Heard::Unasked;
    let forbidden = "Error creating: pods is forbidden: violates PodSecurity \"baseline:latest\"";
    facts.failed_creates = Seen::Is(vec![
        event("per-node", "an older one", "2026-11-30T05:00:00Z"),
        event("per-node", forbidden, "2026-11-30T05:59:00Z"),
        event("other", "another's", "2026-11-30T06:00:00Z"),
    ]);
    let line = finds_on_n2(&facts, Verdict::Fault, "Plugin");
    assert!(
        line.says.ends_with(&format!("event FailedCreate 60s ago from daemonset-controller: {forbidden}")),
        "{line:?}"
    );
    assert!(
        line.repair
            .as_ref()
            .is_some_and(|told| told.starts_with("kubectl label namespace per-node pod-security")),
        "{line:?}"
    );
    facts.failed_creates = Seen::Is(vec![event("per-node", "quota", "2026-11-30T05:59:00Z")]);
    assert!(
        finds_on_n2(&facts, Verdict::Fault, "Plugin")
            .repair
            .is_some_and(|told| told.contains("what the event names"))
    );
}

#[test]
fn a_store_that_was_not_measured_yet_is_not_called_well() {
    let mut facts = healthy();
    n2(&mut facts).heard = heard(|report| report["store"] = Value::Null);
    assert!(finds_on_n2(&facts, Verdict::Warning, "Store").says.starts_with("not measured yet"));
}

#[test]
fn c43_why_the_plugin_is_not_ready_is_its_own_word() {
    let mut facts = healthy();
    let why = "the kubelet could not register the driver: no such node";
    n2(&mut facts).heard = heard(|report| report["sweep"]["notReady"] = json!([why]));
    let line = finds_on_n2(&facts, Verdict::Fault, "Readiness");
    assert_eq!(line.says, why);
    assert!(line.repair.is_some_and(|repair| repair.contains("the kubelet's log")));
    n2(&mut facts).heard = heard(|report| report["sweep"]["notReady"] = json!(["the store is another one"]));
    let line = finds_on_n2(&facts, Verdict::Fault, "Readiness");
    assert!(line.repair.is_some_and(|repair| repair.contains("kubectl logs per-node-n2 -n per-node")));
}

#[test]
fn c22_what_keeps_removals_is_told() {
    for (field, value, says) in [
        ("waitingFor", json!("revision"), "wait for a person: revision"),
        ("stuck", json!(2), "2 removals failed"),
        ("synced", json!(false), "were not read"),
        ("live", json!(false), "is interrupted"),
    ] {
        let mut facts = healthy();
        n2(&mut facts).heard = heard(|report| report["sweep"][field] = value);
        let line = finds_on_n2(&facts, Verdict::Warning, "Removals");
        assert!(line.says.contains(says), "{line:?}");
        let repair = line.repair.as_deref().unwrap_or_default();
        // What deletes is named last, after what shows and what saves.
        let [show, save, confirm] =
            ["--node n2 --show", "make the PersistentVolumes", "then kubectl per-node confirm"]
                .map(|part| repair.find(part));
        assert_eq!(confirm.is_some(), field == "waitingFor", "{line:?}");
        assert!(show <= save && save <= confirm, "{line:?}");
        assert_eq!(repair.starts_with("do not confirm yet"), confirm.is_some(), "{line:?}");
    }
}

#[test]
fn the_stores_space_is_told_before_it_is_gone() {
    for (field, left, verdict) in [
        ("availableBytes", 49, Verdict::Warning),
        ("availableInodes", 10, Verdict::Warning),
        ("availableBytes", 9, Verdict::Fault),
        ("availableInodes", 0, Verdict::Fault),
    ] {
        let mut facts = healthy();
        n2(&mut facts).heard = heard(|report| report["store"][field] = json!(left));
        finds_on_n2(&facts, verdict, "Store");
    }
    // btrfs has no fixed number of inodes.
    let mut facts = healthy();
    n2(&mut facts).heard = heard(|report| {
        report["store"]["totalInodes"] = json!(0);
        report["store"]["availableInodes"] = json!(0);
    });
    assert!(examine(&facts).iter().all(|line| line.verdict == Verdict::Ok));
}

#[test]
fn c43_the_kubelet_has_registered_the_driver_under_the_nodes_name() {
    let mut facts = healthy();
    n2(&mut facts).csi_node = Seen::Absent;
    finds_on_n2(&facts, Verdict::Fault, "CsiNode");
    let csi_node = |id: &str, driver: &str| {
        object(json!({"metadata": {"name": "n2"}, "spec": {"drivers": [{"name": driver, "nodeID": id}]}}))
    };
    n2(&mut facts).csi_node = Seen::Is(csi_node("n2", "other.example"));
    finds_on_n2(&facts, Verdict::Fault, "CsiNode");
    n2(&mut facts).csi_node = Seen::Is(csi_node("host-2", "per-node.liken.sh"));
    change_node(&mut facts, |node| {
        node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"] =
            json!("{\"per-node.liken.sh\":\"host-2\"}");
    });
    finds_on_n2(&facts, Verdict::Warning, "CsiNode");
}

#[test]
fn c43_the_nodes_annotation_names_the_driver_as_its_csi_node_does() {
    for text in [json!("{\"other.example\":\"n2\"}"), json!("no JSON"), json!("")] {
        let mut facts = healthy();
        change_node(&mut facts, |node| {
            node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"] = text
        });
        finds_on_n2(&facts, Verdict::Warning, "NodeAnnotation");
    }
    let mut facts = healthy();
    change_node(&mut facts, |node| {
        node["metadata"]["annotations"]["csi.volume.kubernetes.io/nodeid"] =
            json!("{\"per-node.liken.sh\":\"x\"}");
    });
    let line = finds_on_n2(&facts, Verdict::Warning, "NodeAnnotation");
    assert!(line.says.contains("\"x\"") && line.says.contains("\"n2\""), "{line:?}");
}

#[test]
fn versions_that_were_not_tried_are_told() {
    for (version, verdict) in [
        ("v1.34.0", Verdict::Ok),
        ("v1.37.9+k3s1", Verdict::Ok),
        ("v1.33.5", Verdict::Warning),
        ("v1.38.0", Verdict::Warning),
        ("v2.35.0", Verdict::Warning),
        ("unknown", Verdict::Warning),
    ] {
        let mut facts = healthy();
        change_node(&mut facts, |node| node["status"]["nodeInfo"]["kubeletVersion"] = json!(version));
        match verdict {
            Verdict::Ok => {
                assert!(examine(&facts).iter().all(|line| line.verdict == Verdict::Ok), "{version}")
            }
            other => drop(finds_on_n2(&facts, other, "Kubelet")),
        }
    }
    for (version, verdict) in [
        ("5.8.0", Verdict::Ok),
        ("5.15.0-91-generic", Verdict::Ok),
        ("5.4.0-169-generic", Verdict::Fault),
        ("4.18.0-553.el8", Verdict::Fault),
        ("", Verdict::Warning),
    ] {
        let mut facts = healthy();
        change_node(&mut facts, |node| node["status"]["nodeInfo"]["kernelVersion"] = json!(version));
        match verdict {
            Verdict::Ok => {
                assert!(examine(&facts).iter().all(|line| line.verdict == Verdict::Ok), "{version}")
            }
            other => drop(finds_on_n2(&facts, other, "Kernel")),
        }
    }
}

#[test]
fn c44_the_oldest_kernel_is_the_one_that_the_plugin_demands() {
    let (major, minor) = super::super::node::KERNEL_MIN;
    let demanded = include_str!("../../../adapters/linux/self_check.rs");
    assert!(demanded.contains(&format!("per-node needs Linux {major}.{minor} or newer")));
    let tried = include_str!("../../../../docs/versions.md");
    for minor in super::super::node::KUBERNETES_TRIED {
        assert!(tried.contains(&format!("| 1.{minor}.")), "1.{minor} is not in docs/versions.md");
    }
}

#[test]
fn one_clock_that_is_off_is_told_against_the_others() {
    for (at, verdict) in [
        ("2026-11-30T06:00:09Z", Verdict::Ok),
        ("2026-11-30T06:00:11Z", Verdict::Warning),
        ("2026-11-30T05:59:00Z", Verdict::Warning),
        ("2026-11-30T07:00:00Z", Verdict::Fault),
    ] {
        let mut facts = healthy();
        n2(&mut facts).heard = heard(|report| report["at"] = json!(at));
        match verdict {
            Verdict::Ok => assert!(examine(&facts).iter().all(|line| line.verdict == Verdict::Ok), "{at}"),
            other => drop(finds_on_n2(&facts, other, "Clock")),
        }
    }
}
