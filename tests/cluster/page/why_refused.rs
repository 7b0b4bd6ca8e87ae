//! `kubectl per-node why` where the driver's own word is the reason: a node on which the copy cannot be made, a rule that the
//! volume no longer breaks, and two claims over one handle.

use serde_json::json;

use crate::case::run;
use crate::manifest;
use crate::tool::{tool_json, wait_cause};
use crate::wait::{wait_for, wait_until};

const MANY: &str = "ReadWriteMany";

/// Somebody's file has the name that the copy would get.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c30_why_says_in_the_drivers_words_what_cannot_be_done_on_the_node() {
    run("why-failed", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", MANY);
        std::fs::write(node.copy(&handle), "no directory").expect("written");
        case.apply(&manifest::pod("pod", Some(node.name), &handle, "true"));
        let finding = wait_cause(&case.name, "pod", "MountFailed");
        assert_eq!(finding["certainty"], "certain");
        let told = case.wait_event("pod", "PerNodeMountFailed");
        assert!(finding["sentence"].as_str().is_some_and(|sentence| sentence.contains(&told)), "{finding}");
        std::fs::remove_file(node.copy(&handle)).expect("removed");
        case.wait_running("pod");
    });
}

/// The volume is mended, and the kubelet goes on with what it read when the pod came.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c05_why_tells_of_a_refusal_whose_rule_no_field_breaks_any_more() {
    run("why-mended", |case| {
        let node = &case.cluster.first;
        let handle = case.handle("v");
        let mut volume = manifest::volume(&handle, &handle, MANY, &case.name, &handle);
        volume["spec"]["mountOptions"] = json!(["usrquota"]);
        case.apply(&volume);
        case.apply(&manifest::claim(&handle, MANY));
        case.wait_bound(&handle);
        case.apply(&manifest::pod("pod", Some(node.name), &handle, "true"));
        case.wait_event("pod", "PerNodeVolumeRefused");
        let mended = r#"{"spec": {"mountOptions": null}}"#;
        case.kubectl(&["patch", "pv", &handle, "--type=merge", "--patch", mended]);
        let finding = wait_cause(&case.name, "pod", "Refused");
        assert!(finding["sentence"].to_string().contains("spec.mountOptions"), "{finding}");
        // As it says: the kubelet does not look at the volume again, and a pod that is made anew has it as it is now.
        let remedy = finding["remedy"].as_str().unwrap_or_default();
        assert!(remedy.ends_with(&format!("kubectl delete pod pod -n {}", case.name)), "{remedy}");
        case.delete("pod", "pod");
        case.running_pod("pod", node, &handle, "true");
    });
}

/// How often the kubelet may come upon both volumes of a pod in one round: seldom.
const PODS_MADE: usize = 10;

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c13_why_tells_of_a_pod_with_two_claims_over_one_handle() {
    run("why-twice", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", MANY);
        let other = format!("{handle}-again");
        case.apply(&manifest::volume(&other, &handle, MANY, &case.name, &other));
        case.apply(&manifest::claim(&other, MANY));
        case.wait_bound(&other);
        let mut pod = manifest::pod("pod", Some(node.name), &handle, "true");
        let again = json!({"name": "again", "persistentVolumeClaim": {"claimName": other}});
        pod["spec"]["volumes"].as_array_mut().expect("volumes").push(again);
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array_mut();
        mounts.expect("mounts").push(json!({"name": "again", "mountPath": "/again"}));
        // The kubelet knows a volume by driver and handle, so of two it mostly waits for ever for one. Where it comes upon both in one
        // round it starts the pod with both, and then there is nothing to tell: so pods are made until one is seen that does not run.
        let finding = (0..PODS_MADE).find_map(|_| {
            case.apply(&pod);
            let told = wait_for("the pod to run, or why to tell why not", || {
                let told = tool_json(&["why", "pod", "-n", &case.name]);
                (told["runs"] == true || told["findings"][0]["cause"] == "HandleTwice").then_some(told)
            });
            if told["runs"] == true {
                assert_eq!(told["findings"], json!([]), "it has what it wants");
                case.delete("pod", "pod");
                return None;
            }
            Some(told["findings"][0].clone())
        });
        let finding = finding.expect("of so many pods one does not run at once");
        assert!(finding["evidence"].to_string().contains(&format!("{handle} and {other}")), "{finding}");
        wait_until("its copy to be mounted all the same", || !node.mounts_of(&handle).is_empty());
    });
}
