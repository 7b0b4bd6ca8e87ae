//! The plugin holds no more than it says: its process has given up what `privileged` granted it, its account may do what its
//! role lists, and its pod needs the Pod Security level that its namespace declares.

use serde_json::{Value, json};

use crate::case::run;
use crate::cluster::{cluster, repository};
use crate::manifest;
use crate::node::Node;

/// CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4 and SYS_ADMIN 21, as deploy/ lists them.
const DECLARED: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 21;

/// The status of the plugin's process on a node.
fn status(node: &Node) -> String {
    let process = node.plugin_process().unwrap_or_else(|| panic!("no plugin runs on {}", node.name));
    std::fs::read_to_string(format!("/proc/{process}/status")).expect("its status")
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn the_plugin_has_five_capabilities_and_gains_no_more() {
    for node in cluster().nodes() {
        let status = status(node);
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            line.trim_start_matches(':').trim().to_owned()
        };
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            let held = u64::from_str_radix(&field(set), 16).expect("a mask");
            assert_eq!(held & !DECLARED, 0, "{set} on {} is {held:x}", node.name);
        }
        assert_eq!(field("NoNewPrivs"), "1");
        assert_eq!(field("Seccomp"), "2", "its own filter: the runtime gives a privileged container none");
    }
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c32_the_plugin_may_list_volumes_and_post_events_and_nothing_else() {
    let may = |verb: &str, resource: &str, namespace: &str| {
        let account = "--as=system:serviceaccount:per-node:per-node";
        let output =
            cluster().kubectl_with(&["auth", "can-i", verb, resource, account, "--namespace", namespace], "");
        String::from_utf8_lossy(&output.stdout).trim() == "yes"
    };
    for (verb, resource, namespace, expected) in [
        ("list", "persistentvolumes", "default", true),
        ("watch", "persistentvolumes", "default", true),
        ("get", "namespaces/kube-system", "kube-system", true),
        ("create", "events", "default", true),
        ("patch", "events", "default", true),
        ("get", "namespaces/default", "default", false),
        ("list", "events", "default", false),
        ("get", "pods", "default", false),
        ("get", "secrets", "per-node", false),
        ("delete", "persistentvolumes", "default", false),
        ("get", "nodes", "default", false),
    ] {
        assert_eq!(may(verb, resource, namespace), expected, "{verb} {resource}");
    }
}

/// The object of a file of deploy/base.
fn deployed(file: &str) -> Value {
    let path = repository().join("deploy/base").join(file);
    serde_saphyr::from_str(&std::fs::read_to_string(path).expect("a manifest")).expect("one object")
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn the_plugins_pod_is_admitted_at_its_declared_level_and_refused_at_the_next_stricter() {
    run("pod-security", |case| {
        let label = "pod-security.kubernetes.io/enforce";
        let declared = deployed("namespace.yaml")["metadata"]["labels"][label].clone();
        assert_eq!(declared, "privileged");
        // The pod of deploy/ itself: what the overlay adds to it for this cluster is not what is asked about.
        let mut daemon_set = deployed("daemon-set.yaml");
        let plugin = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "plugin"},
            "spec": daemon_set["spec"]["template"]["spec"].take(),
        });
        case.kubectl(&["create", "serviceaccount", "per-node"]);
        let tried = |pod: &Value, level: &str| {
            case.cluster.kubectl(&[
                "label",
                "--overwrite",
                "namespace",
                &case.name,
                &format!("{label}={level}"),
            ]);
            let apply = ["--namespace", &case.name, "apply", "--dry-run=server", "-f", "-"];
            let output = case.cluster.kubectl_with(&apply, &pod.to_string());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(said) }
        };
        assert_eq!(tried(&plugin, "privileged"), Ok(()));
        let refused = tried(&plugin, "baseline").expect_err("baseline admits it");
        assert!(refused.contains("violates PodSecurity \"baseline:latest\""), "{refused}");
        // These two are why, and nothing else is.
        assert!(refused.contains("hostPath volumes") && refused.contains("privileged"), "{refused}");
        assert!(!refused.contains("host namespaces") && !refused.contains("hostPort"), "{refused}");
        // The pods that use its volumes need no such level.
        assert_eq!(tried(&manifest::pod("user", None, "claim", "true"), "baseline"), Ok(()));
    });
}
