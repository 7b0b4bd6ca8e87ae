//! The chart, installed, upgraded, rolled back and uninstalled by helm itself while pods write: a second installation beside the
//! cluster's own, first by kustomize, then taken over (C40).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::api::api;
use crate::case::{Case, run};
use crate::cluster::{cluster, repository};
use crate::node::Node;
use crate::wait::{KUBECTL_PATIENCE, wait_until};
use crate::writer::Writer;

/// The installation of deploy/overlays/second-instance: its driver, and its namespace, which is also its store's name.
const DRIVER: &str = "fast.per-node.liken.sh";
const NAMESPACE: &str = "per-node-fast";
/// The release. Its name tells nothing to anybody.
const RELEASE: &str = "fast";

/// The DaemonSet and its pods.
const DAEMON_SET: &str = "/apis/apps/v1/namespaces/per-node-fast/daemonsets/per-node";
const PODS: &str = "/api/v1/namespaces/per-node-fast/pods?labelSelector=app.kubernetes.io%2Fname%3Dper-node";

/// helm, built where it has not been yet, with the cluster's administrator.
fn helm_with(arguments: &[&str]) -> Output {
    let tools = repository().join("tests/deploy/build-tools");
    let built = Command::new(tools).arg("helm").output().expect("build-tools");
    let directory = PathBuf::from(String::from_utf8_lossy(&built.stdout).trim());
    let mut command = Command::new(directory.join("helm"));
    command.args(["--namespace", NAMESPACE]).args(arguments);
    command.env("KUBECONFIG", cluster().kubeconfig()).output().expect("helm")
}

fn helm(arguments: &[&str]) -> String {
    let output = helm_with(arguments);
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "helm {}: {}", arguments.join(" "), said(&output.stderr));
    said(&output.stdout)
}

/// `helm install` or `helm upgrade` with the values of the second installation, and of this cluster.
fn with_chart(verb: &[&str], more: &[&str]) -> String {
    let path = |below: &str| repository().join(below).display().to_string();
    let chart = path("deploy/chart");
    let second = format!("--values={}", path("deploy/chart/values/second-instance.yaml"));
    let here = format!("--values={}", path("tests/cluster/overlay/fast/values.yaml"));
    helm(&[verb, &[RELEASE, &chart, &second, &here], more].concat())
}

/// The plugin's pod that is not on its way out.
fn plugin() -> Option<Value> {
    api().items(PODS).into_iter().find(|pod| pod["metadata"]["deletionTimestamp"].is_null())
}

fn plugin_uid() -> Option<String> {
    Some(plugin()?["metadata"]["uid"].as_str()?.to_owned())
}

/// Whether the node's kubelet knows the driver.
fn registered(node: &Node) -> bool {
    let path = format!("/apis/storage.k8s.io/v1/csinodes/{}", node.name);
    let found = api().get(&path).unwrap_or_default();
    found["spec"]["drivers"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == DRIVER))
}

fn wait_ready(node: &Node) {
    wait_until("the installation to be ready", || {
        let ready = plugin().is_some_and(|pod| pod["status"]["containerStatuses"][0]["ready"] == true);
        ready && registered(node)
    });
}

/// The plugin is replaced by another, while a new pod asks for a volume: it has to start, and the writer must not notice.
fn replaced_by(case: &Case, writer: &Writer<'_>, node: &Node, pod: &str, step: impl FnOnce()) {
    let before = plugin_uid();
    step();
    let handle = case.bound_volume_of(DRIVER, pod, "ReadWriteMany");
    case.running_pod(pod, node, &handle, "echo kept > /data/file");
    wait_until("another plugin", || plugin_uid().is_some_and(|now| Some(now) != before));
    wait_ready(node);
    wait_until("the pod's file", || node.read(&handle, "file").is_some());
    writer.noticed_nothing();
}

/// Runs `body` with the second installation, and ends it whatever came of that.
fn with_second_installation(case: &Case, body: impl FnOnce()) {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if outcome.is_err() {
        // While there is a plugin to unmount what they have.
        cluster().kubectl_with(&["--namespace", &case.name, "delete", "pods", "--all", "--timeout=30s"], "");
        let shown = ["get", "pods,events,daemonsets", "--namespace", NAMESPACE];
        println!("{}", String::from_utf8_lossy(&cluster().kubectl_with(&shown, "").stdout));
        helm_with(&["uninstall", RELEASE, "--ignore-not-found"]);
        let all = repository().join("tests/cluster/overlay/fast");
        let all = all.to_str().expect("a path of text");
        cluster().kubectl_with(&["delete", "--ignore-not-found", "-k", all, KUBECTL_PATIENCE], "");
    }
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c40_the_chart_is_installed_upgraded_rolled_back_and_removed_under_pods_that_write() {
    let node = &cluster().first.with_installation(NAMESPACE);
    run("c40-chart", |case| with_second_installation(case, || from_kustomize_to_nothing(case, node)));
}

fn from_kustomize_to_nothing(case: &Case, node: &Node) {
    let overlay = repository().join("tests/cluster/overlay/fast");
    cluster().kubectl(&["apply", "-k", overlay.to_str().expect("a path of text")]);
    wait_ready(node);
    let writer = Writer::start_of(DRIVER, case, node);
    let kept = case.bound_volume_of(DRIVER, "kept", "ReadWriteMany");
    case.running_pod("before", node, &kept, "echo kept > /data/file");
    wait_until("the pod's file", || node.read(&kept, "file").is_some());
    taken_over_without_a_restart();
    writer.noticed_nothing();

    // The plugin goes; pods, copies and what they write stay.
    case.delete("pod", "before");
    helm(&["uninstall", RELEASE, "--wait"]);
    wait_until("the plugin to go", || api().items(PODS).is_empty() && !registered(node));
    assert!(api().get(&format!("/apis/storage.k8s.io/v1/csidrivers/{DRIVER}")).is_none());
    writer.noticed_nothing();
    assert_eq!(node.read(&kept, "file").as_deref(), Some("kept\n"));

    // Installed again, by helm alone, it finds them.
    let notes = with_chart(&["install"], &[]);
    assert!(notes.contains(&format!("helm test {RELEASE}")) && !notes.contains("CAUTION"), "{notes}");
    wait_ready(node);
    writer.noticed_nothing();
    case.running_pod("after", node, &kept, "cp /data/file /data/found");
    wait_until("its copy's file", || node.read(&kept, "found").as_deref() == Some("kept\n"));
    the_test_pod_passes_and_leaves_nothing(node);

    cluster().call(&["upgrade_image"]);
    replaced_by(case, &writer, node, "upgraded", || {
        with_chart(&["upgrade"], &["--set=image.tag=next"]);
    });
    replaced_by(case, &writer, node, "rolled-back", || {
        helm(&["rollback", RELEASE, "1"]);
    });
    remove_everything_as_the_notes_say(case, node, &[writer.volume(), &kept]);
}

/// What kustomize has installed becomes the release's, and no plugin is restarted for it.
fn taken_over_without_a_restart() {
    let generation = || api().get(DAEMON_SET).expect("the DaemonSet")["metadata"]["generation"].clone();
    let before = (plugin_uid(), generation());
    with_chart(&["install", "--take-ownership", "--force-conflicts"], &[]);
    let taken = api().get(DAEMON_SET).expect("the DaemonSet");
    assert_eq!(taken["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    assert_eq!((plugin_uid(), generation()), before);
}

/// `helm test` makes a volume of its own and takes it away again, with its copy.
fn the_test_pod_passes_and_leaves_nothing(node: &Node) {
    let said = helm(&["test", RELEASE]);
    assert!(said.contains("Succeeded"), "{said}");
    let handle = format!("{NAMESPACE}-test");
    wait_until("the test's volume to go", || {
        api().get(&format!("/api/v1/persistentvolumes/{handle}")).is_none() && !node.copy(&handle).exists()
    });
}

/// Pods, then volumes, then the release and the namespace; the store's directory is left, and can be removed by hand.
fn remove_everything_as_the_notes_say(case: &Case, node: &Node, volumes: &[&str]) {
    case.kubectl(&["delete", "pods", "--all", KUBECTL_PATIENCE]);
    let replaced = ["upgraded", "rolled-back"].map(|suffix| format!("{}-{suffix}", case.name));
    for volume in volumes.iter().copied().chain(replaced.iter().map(String::as_str)) {
        case.delete_volume(volume);
    }
    let copies = node.store().join("copies");
    wait_until("no copy to be left", || {
        std::fs::read_dir(&copies).is_ok_and(|mut entries| entries.next().is_none())
    });
    helm(&["uninstall", RELEASE, "--wait"]);
    cluster().kubectl(&["delete", "namespace", NAMESPACE, KUBECTL_PATIENCE]);
    wait_until("the driver to be forgotten", || !registered(node));
    assert!(copies.exists(), "the store stays");
    std::fs::remove_dir_all(node.store()).expect("nothing is mounted in it");
}
