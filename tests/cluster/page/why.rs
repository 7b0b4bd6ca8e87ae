//! `kubectl per-node why` for what other pods, the volume itself and the pod's own containers do. Each cause is made as people
//! make it.

use serde_json::{Value, json};

use crate::case::{Case, run};
use crate::manifest;
use crate::tool::{tool, tool_json, wait_cause};
use crate::wait::wait_until;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_why_names_the_holder_and_where_nothing_is_wrong_says_that() {
    run("why-held", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, "true");
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));
        let finding = wait_cause(&case.name, "waiter", "Held");
        assert_eq!(finding["certainty"], "certain");
        let sentence = finding["sentence"].as_str().unwrap_or_default();
        assert!(sentence.starts_with(&format!("{}/holder holds the volume", case.name)), "{sentence}");
        assert!(sentence.contains(", for "), "{sentence}");
        let output = tool(&["why", "holder", "-n", &case.name]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("Nothing wrong that I can see.\n"), "{text}");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c03_c05_why_names_the_rule_that_a_volume_breaks() {
    run("why-refused", |case| {
        let node = &case.cluster.first;
        let volume = |suffix: &str, change: fn(&mut Value)| {
            let name = format!("{}-{suffix}", case.name);
            let mut volume = manifest::volume(&name, &name, "ReadWriteMany", &case.name, suffix);
            change(&mut volume);
            case.apply(&volume);
            case.apply(&manifest::claim(suffix, "ReadWriteMany"));
            case.wait_bound(suffix);
            case.apply(&manifest::pod(suffix, Some(node.name), suffix, "true"));
        };
        volume("handle", |volume| volume["spec"]["csi"]["volumeHandle"] = json!("Upper"));
        volume("options", |volume| volume["spec"]["mountOptions"] = json!(["usrquota"]));
        wait_cause(&case.name, "handle", "HandleRule");
        wait_cause(&case.name, "options", "MountOptions");
        // Said once: the driver's event and the kubelet's repeat the rule.
        wait_until("the driver's event", || !case.events("handle", "PerNodeVolumeRefused").is_empty());
        let findings = tool_json(&["why", "handle", "-n", &case.name])["findings"].take();
        assert_eq!(findings.as_array().map(Vec::len), Some(1), "{findings}");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c05_why_names_block_and_inline_volumes() {
    run("why-block", |case| {
        let node = &case.cluster.first;
        let name = format!("{}-block", case.name);
        let mut volume = manifest::volume(&name, &name, "ReadWriteMany", &case.name, "block");
        volume["spec"]["volumeMode"] = json!("Block");
        let mut claim = manifest::claim("block", "ReadWriteMany");
        claim["spec"]["volumeMode"] = json!("Block");
        let mut pod = manifest::pod("block", Some(node.name), "block", "true");
        pod["spec"]["containers"][0]["volumeMounts"] = json!([]);
        pod["spec"]["containers"][0]["volumeDevices"] = json!([{"name": "data", "devicePath": "/dev/data"}]);
        case.apply(&volume);
        case.apply(&claim);
        case.wait_bound("block");
        case.apply(&pod);
        wait_cause(&case.name, "block", "BlockVolume");
        let mut pod = manifest::pod("inline", Some(node.name), "none", "true");
        pod["spec"]["volumes"] = json!([{"name": "data", "csi": {"driver": manifest::DRIVER}}]);
        case.apply(&pod);
        wait_cause(&case.name, "inline", "InlineVolume");
    });
}

/// A Deployment over a claim that rolls as Kubernetes does where nobody says how, on one node.
fn deployment(node: &str, claim: &str, round: &str) -> Value {
    let mut pod = manifest::pod("none", Some(node), claim, "true");
    pod["spec"]["restartPolicy"] = json!("Always");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "roller"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "roller"}},
            "template": {
                "metadata": {"labels": {"app": "roller"}, "annotations": {"round": round}},
                "spec": pod["spec"],
            },
        },
    })
}

/// The pod of the Deployment that does not run, once there is one.
fn waiting_pod(case: &Case) -> String {
    let path = format!("/api/v1/namespaces/{}/pods?labelSelector=app%3Droller", case.name);
    crate::wait::wait_for("the new pod", || {
        let pods = crate::api::api().items(&path);
        let waiting = pods.iter().find(|pod| pods.len() > 1 && pod["status"]["phase"] == "Pending")?;
        Some(waiting["metadata"]["name"].as_str()?.to_owned())
    })
}

/// Rolls a Deployment over a claim of that mode until its new pod waits.
fn rolled(case: &Case, mode: &str) -> String {
    let node = &case.cluster.first;
    let handle = case.bound_volume("v", mode);
    case.apply(&deployment(node.name, &handle, "one"));
    let path = format!("/api/v1/namespaces/{}/pods?labelSelector=app%3Droller", case.name);
    wait_until("the first pod", || {
        crate::api::api().items(&path).iter().any(|pod| pod["status"]["phase"] == "Running")
    });
    case.apply(&deployment(node.name, &handle, "two"));
    waiting_pod(case)
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c04_why_names_a_rolling_update_over_a_claim_for_one_pod() {
    run("why-rolling-once", |case| {
        let pod = rolled(case, "ReadWriteOncePod");
        wait_cause(&case.name, &pod, "RollingUpdateOncePod");
        wait_cause(&case.name, &pod, "OncePodInUse");
        let finding = wait_cause(&case.name, &pod, "Unscheduled");
        assert!(finding["evidence"].to_string().contains("ReadWriteOncePod"), "{finding}");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_why_names_a_rolling_update_that_brings_both_pods_to_one_node() {
    run("why-rolling-many", |case| {
        let pod = rolled(case, "ReadWriteMany");
        wait_cause(&case.name, &pod, "Held");
        let finding = wait_cause(&case.name, &pod, "RollingUpdateSurge");
        assert!(finding["remedy"].to_string().contains("maxSurge"), "{finding}");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_passes_on_what_containers_and_the_kubelet_say() {
    run("why-others", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteOnce");
        let mut pod = manifest::pod("no-image", Some(node.name), &handle, "true");
        pod["spec"]["containers"][0]["image"] = json!("no-such-image");
        case.apply(&pod);
        let finding = wait_cause(&case.name, "no-image", "Container");
        assert!(finding["sentence"].to_string().contains("ErrImageNeverPull"), "{finding}");
        wait_cause(&case.name, "no-image", "ReadWriteOnce");
        case.delete("pod", "no-image");

        let mut pod = manifest::pod("no-map", Some(node.name), &handle, "true");
        let map = json!({"name": "map", "configMap": {"name": "none"}});
        pod["spec"]["volumes"].as_array_mut().expect("volumes").push(map);
        // A kubelet mounts what a container asks for, and nothing else.
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array_mut();
        mounts.expect("mounts").push(json!({"name": "map", "mountPath": "/map"}));
        case.apply(&pod);
        // Between two tries a slow kubelet says only that it waited, under the same reason; the newest is what is passed on.
        wait_until("the kubelet's words to be passed on", || {
            let finding = wait_cause(&case.name, "no-map", "KubeletEvent");
            finding["evidence"].to_string().contains("configmap")
        });
        case.delete("pod", "no-map");

        let mut pod = manifest::pod("finalized", Some(node.name), &handle, "true");
        pod["metadata"]["finalizers"] = json!(["example.test/stays"]);
        case.apply(&pod);
        case.wait_running("finalized");
        case.delete_at_once("pod", "finalized");
        let finding = wait_cause(&case.name, "finalized", "PodTerminating");
        assert!(finding["evidence"].to_string().contains("example.test/stays"), "{finding}");
        case.without_finalizers("pod", "finalized");
    });
}
