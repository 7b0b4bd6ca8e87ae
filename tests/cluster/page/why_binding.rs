//! `kubectl per-node why` for what lies between a pod and its volume, and `release` and `manifest`, which mend it. Each cause is
//! made as people make it, and Kubernetes itself keeps the pod waiting.

use serde_json::{Value, json};

use crate::case::{Case, broken, run};
use crate::manifest;
use crate::tool::{tool, wait_cause};
use crate::wait::{KUBECTL_PATIENCE, wait_until};

const MANY: &str = "ReadWriteMany";

/// A volume and a claim of that name, each changed before it is sent, and a pod over the claim.
fn pair(
    case: &Case,
    suffix: &str,
    change_volume: impl FnOnce(&mut Value),
    change_claim: impl FnOnce(&mut Value),
) -> String {
    let name = case.handle(suffix);
    let mut volume = manifest::volume(&name, &name, MANY, &case.name, &name);
    change_volume(&mut volume);
    let mut claim = manifest::claim(&name, MANY);
    change_claim(&mut claim);
    case.apply(&volume);
    case.apply(&claim);
    case.apply(&manifest::pod(suffix, None, &name, "true"));
    name
}

fn nothing(_: &mut Value) {}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_a_claim_is_not_there_or_has_no_volume() {
    run("why-no-claim", |case| {
        case.apply(&manifest::pod("pod", None, "nobody", "true"));
        wait_cause(&case.name, "pod", "ClaimMissing");
        wait_cause(&case.name, "pod", "Unscheduled");
        case.apply(&manifest::claim("lonely", MANY));
        case.apply(&manifest::pod("lonely", None, "lonely", "true"));
        wait_cause(&case.name, "lonely", "NoVolumeForClaim");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_claim_and_volume_do_not_fit() {
    run("why-mismatch", |case| {
        // A volume that is reserved for a claim is bound whatever its class: only one that the claim names is compared.
        // Its class is nobody else's, so that no claim of another case gets it.
        let of_nobody = |volume: &mut Value| {
            volume["spec"]["claimRef"] = Value::Null;
            volume["spec"]["storageClassName"] = json!("why-mismatch");
        };
        let name = format!("{}-class", case.name);
        let naming = |claim: &mut Value| claim["spec"]["volumeName"] = json!(name);
        pair(case, "class", of_nobody, naming);
        let once = |claim: &mut Value| claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
        pair(case, "mode", nothing, once);
        let large = |claim: &mut Value| claim["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
        pair(case, "size", nothing, large);
        let block = |claim: &mut Value| claim["spec"]["volumeMode"] = json!("Block");
        pair(case, "block", nothing, block);
        for (pod, cause) in [
            ("class", "ClassMismatch"),
            ("mode", "ModeMismatch"),
            ("size", "SizeMismatch"),
            ("block", "VolumeModeMismatch"),
        ] {
            let finding = wait_cause(&case.name, pod, cause);
            assert_eq!(finding["certainty"], "certain");
            assert_eq!(case.pod(pod).expect("the pod")["status"]["phase"], "Pending");
        }
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_a_claim_names_a_volume_that_is_not_there_or_anothers() {
    run("why-volume-name", |case| {
        let gone = |claim: &mut Value| claim["spec"]["volumeName"] = json!("why-volume-name-none");
        pair(case, "gone", nothing, gone);
        wait_cause(&case.name, "gone", "VolumeMissing");
        let mine = case.bound_volume("mine", MANY);
        let mut claim = manifest::claim("thief", MANY);
        claim["spec"]["volumeName"] = json!(mine);
        case.apply(&claim);
        case.apply(&manifest::pod("thief", None, "thief", "true"));
        let finding = wait_cause(&case.name, "thief", "VolumeOfAnotherClaim");
        assert!(finding["sentence"].to_string().contains(&format!("{}/{mine}", case.name)), "{finding}");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c20_a_claim_made_anew_gets_its_copy_back_by_release() {
    run("c20-release", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", MANY);
        case.running_pod("first", node, &handle, "echo kept > /data/file");
        wait_until("the file", || node.read(&handle, "file").is_some());
        // While a claim has it nothing is done.
        assert_eq!(tool(&["release", &handle, "--yes"]).status.code(), Some(5));
        case.delete("pod", "first");
        case.delete("pvc", &handle);
        wait_until("the volume to be released", || {
            case.kubectl(&["get", "pv", &handle, "-o", "jsonpath={.status.phase}"]) == "Released"
        });
        case.apply(&manifest::claim(&handle, MANY));
        case.apply(&manifest::pod("next", Some(node.name), &handle, "cat /data/file"));
        let finding = wait_cause(&case.name, "next", "ClaimRefUid");
        assert_eq!(finding["remedy"], format!("kubectl per-node release {handle}"));
        // Without a terminal and without a yes it shows the patch and does nothing.
        assert_eq!(tool(&["release", &handle]).status.code(), Some(5));
        let released = tool(&["release", &handle, "--yes"]);
        assert!(released.status.success(), "{}", String::from_utf8_lossy(&released.stderr));
        case.wait_bound(&handle);
        case.wait_running("next");
        wait_until("its log", || case.kubectl(&["logs", "next"]) == "kept\n");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_a_claim_or_its_volume_is_on_its_way_out_or_gone() {
    run("why-going", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", MANY);
        case.running_pod("holder", node, &handle, "true");
        case.delete_at_once("pv", &handle);
        wait_cause(&case.name, "holder", "VolumeTerminating");
        case.delete_at_once("pvc", &handle);
        case.apply(&manifest::pod("late", None, &handle, "true"));
        wait_cause(&case.name, "late", "ClaimTerminating");
        case.kubectl(&["delete", "pod", "holder", "late", KUBECTL_PATIENCE]);

        let lost = case.bound_volume("lost", MANY);
        case.delete_at_once("pv", &lost);
        case.without_finalizers("pv", &lost);
        case.apply(&manifest::pod("lost", None, &lost, "true"));
        wait_cause(&case.name, "lost", "ClaimLost");
    });
}

/// Somebody else's finalizer keeps a deleted volume that no claim has yet.
#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn why_the_volume_for_a_claim_is_being_deleted_before_it_is_bound() {
    run("why-reserved-going", |case| {
        let name = case.handle("v");
        let mut volume = manifest::volume(&name, &name, MANY, &case.name, &name);
        volume["metadata"]["finalizers"] = json!(["example.test/stays"]);
        broken(
            || {
                case.apply(&volume);
                case.delete_at_once("pv", &name);
            },
            || {
                case.apply(&manifest::claim(&name, MANY));
                case.apply(&manifest::pod("pod", None, &name, "true"));
                let finding = wait_cause(&case.name, "pod", "ReservedVolumeTerminating");
                assert!(
                    finding["sentence"].to_string().contains(&format!("{}/{name}", case.name)),
                    "{finding}"
                );
            },
            || case.without_finalizers("pv", &name),
        );
        // As it says: it has gone, and is made anew.
        case.apply(&manifest::volume(&name, &name, MANY, &case.name, &name));
        case.wait_running("pod");
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c02_what_manifest_prints_is_applied_as_it_is() {
    run("c02-manifest", |case| {
        let name = case.handle("v");
        let print = |arguments: &[&str]| {
            let output = tool(&[&["manifest", &name, "--size=1Gi", "-n", &case.name], arguments].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        let strictly = ["apply", "--validate=strict", "-f", "-"];
        for workload in ["--deployment", "--statefulset", "--daemonset"] {
            let dry = [&strictly[..], &["--dry-run=server"]].concat();
            let output = case.cluster.kubectl_with(&dry, &print(&[workload]));
            assert!(output.status.success(), "{workload}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let output = case.cluster.kubectl_with(&strictly, &print(&["--mode=rwop"]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // So that the end of the case finds it.
        case.kubectl(&["label", "pv", &name, &format!("case={}", case.name)]);
        case.wait_bound(&name);
        case.running_pod("pod", &case.cluster.first, &name, "true");
    });
}
