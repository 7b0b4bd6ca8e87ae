//! The plugin holds no more than it says: the process has given up what `privileged` granted it.

use crate::cluster::cluster;
use crate::node::Node;

/// CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4 and SYS_ADMIN 21, as deploy/ lists them.
const DECLARED: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 21;

/// The status of the plugin's process on a node: the one that runs `/per-node` below the node's first process.
fn status(node: &Node) -> String {
    let processes = std::fs::read_dir("/proc").expect("proc").filter_map(Result::ok);
    let serving = format!("--store=/var/lib/{}\0", node.daemon_set);
    for process in processes {
        let commandline = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let commandline = String::from_utf8_lossy(&commandline);
        if commandline.starts_with("/per-node\0serve\0") && commandline.contains(&serving) {
            return std::fs::read_to_string(process.path().join("status")).expect("its status");
        }
    }
    panic!("no plugin runs on {}", node.name);
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
