//! What is rendered, judged by others: `helm lint`, and kubeconform with schemas of a real API server and of the Prometheus
//! operator (tests/deploy/schemas; how they are made stands in tests/deploy/write-schemas).

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::monitoring;
use super::render::{INSTALLATIONS, Installation, is_hook, objects, template};
use super::tool::{chart, repository, run};

/// Objects of OpenShift alone, of which a Kubernetes API server has no schema.
const NOT_KUBERNETES: &str = "SecurityContextConstraints";

/// Every field has to be one that the API server knows.
fn judge(text: &str) -> Result<String, String> {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    let location = format!("{}/{{{{.ResourceKind}}}}.json", schemas().display());
    let path = file.path().to_str().expect("a path of text").to_owned();
    run("kubeconform", ["-strict", "-summary", "-schema-location", &location, "-skip", NOT_KUBERNETES, &path])
}

fn schemas() -> PathBuf {
    repository().join("tests/deploy/schemas")
}

fn as_yaml(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn helm_finds_nothing_to_lint() {
    for installation in &INSTALLATIONS {
        let chart = chart();
        let chart = chart.to_str().expect("a path of text");
        let said = run("helm", ["lint", "--strict", chart, &installation.values()]).expect("helm lint");
        assert!(said.contains("0 chart(s) failed"), "{said}");
        // An icon is all it may want.
        let wanted: Vec<_> = said.lines().filter(|line| line.starts_with('[')).collect();
        assert!(wanted.iter().all(|line| line.contains("icon is recommended")), "{wanted:#?}");
    }
}

#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn every_object_has_only_fields_that_the_api_server_knows() {
    for installation in &INSTALLATIONS {
        for render in [Installation::by_chart, Installation::by_overlay] {
            let said = judge(&as_yaml(&render(installation)));
            let said = said.unwrap_or_else(|said| panic!("{}: {said}", installation.name));
            assert!(said.contains("Invalid: 0, Errors: 0"), "{said}");
        }
    }
    // With everything on that is off.
    let digest = format!("--set=image.digest=sha256:{}", "0".repeat(64));
    let all = [
        "--set=test.image=busybox",
        "--set=hostNetwork=true",
        "--set=csiDriver.preventPodSchedulingIfMissing=true",
        "--set-json=image.pullSecrets=[{\"name\":\"pull\"}]",
        &digest,
        "--set-json=affinity={\"nodeAffinity\":{}}",
        "--set-json=podLabels={\"team\":\"storage\"}",
        "--set-json=podAnnotations={\"example.org/note\":\"1\"}",
        "--set-json=extraEnv=[{\"name\":\"RUST_LOG\",\"value\":\"debug\"}]",
        "--set-json=extraVolumes=[{\"name\":\"extra\",\"emptyDir\":{}}]",
        "--set-json=extraVolumeMounts=[{\"name\":\"extra\",\"mountPath\":\"/extra\"}]",
        "--set-json=test.tolerations=[{\"operator\":\"Exists\"}]",
    ];
    let rendered = template("elsewhere", &[&all[..], &monitoring::ON].concat()).expect("it renders");
    judge(&rendered).expect("every object");
    let objects = objects(&rendered);
    let named = |kind: &str| {
        objects.iter().find(|object| object["kind"] == kind).expect("one")["metadata"]["name"].clone()
    };
    assert_eq!(named("ClusterRole"), "per-node-elsewhere");
    assert_eq!(objects.iter().filter(|object| is_hook(object)).count(), 3);
}

#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn what_watches_the_plugin_has_only_fields_that_its_operator_knows() {
    for objects in [monitoring::by_kustomize(), monitoring::by_chart("per-node", &monitoring::ON)] {
        let said = judge(&as_yaml(&objects)).expect("every object");
        assert!(said.contains("Valid: 3, Invalid: 0, Errors: 0, Skipped: 0"), "{said}");
    }
}

#[test]
fn the_schemas_are_of_the_version_that_the_cluster_runs() {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file");
    let versions = read(repository().join("tests/cluster/lib/versions.sh"));
    let cluster = versions.lines().find_map(|line| line.strip_prefix("default_k8s_version="));
    assert_eq!(cluster, Some(read(schemas().join("VERSION")).trim()), "run tests/deploy/write-schemas");
}

#[test]
fn the_schemas_of_the_operator_are_of_the_version_that_the_script_names() {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a file");
    let script = read(repository().join("tests/deploy/write-schemas"));
    let version = script.lines().find_map(|line| line.strip_prefix("operator=")).expect("a version");
    for kind in ["podmonitor", "prometheusrule"] {
        let schema: Value =
            serde_json::from_str(&read(schemas().join(kind).with_extension("json"))).expect("JSON");
        assert_eq!(schema["$comment"], version, "{kind}: run tests/deploy/write-schemas operator");
    }
}

/// The judge itself: it sees a field that is none.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn a_field_that_is_none_is_found() {
    let mut objects = INSTALLATIONS[0].by_chart();
    let daemon_set = objects.iter_mut().find(|object| object["kind"] == "DaemonSet").expect("a DaemonSet");
    daemon_set["spec"]["template"]["spec"]["containers"][0]["argz"] = json!([]);
    let said = judge(&as_yaml(&objects)).expect_err("argz is no field");
    assert!(said.contains("argz"), "{said}");
}

/// And in an object of the operator, at any depth; and a value or a version that is none.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn a_field_that_the_operator_does_not_have_is_found() {
    for (kind, below, field, value) in [
        ("PodMonitor", "", "apiVersion", json!("monitoring.coreos.com/v1beta1")),
        ("PodMonitor", "/metadata", "label", json!({})),
        ("PodMonitor", "/spec", "jobLable", json!("job")),
        ("PodMonitor", "/spec/podMetricsEndpoints/0", "interval", json!("soon")),
        ("PodMonitor", "/spec/podMetricsEndpoints/0/relabelings/0", "sourceLabel", json!([])),
        ("PrometheusRule", "/spec", "group", json!([])),
        ("PrometheusRule", "/spec/groups/1/rules/0", "label", json!({})),
        ("PrometheusRule", "/spec/groups/1/rules/0", "for", json!("5 minutes")),
        ("PrometheusRule", "/spec/groups/1/rules/0/labels", "severity", json!(1)),
        ("ConfigMap", "", "date", json!({})),
    ] {
        let mut objects = monitoring::by_kustomize();
        let object = objects.iter_mut().find(|object| object["kind"] == kind).expect("an object");
        object.pointer_mut(below).expect("a place")[field] = value;
        let said = judge(&as_yaml(&objects)).expect_err(&format!("{kind}{below}/{field} is taken"));
        assert!(said.contains(field), "{said}");
        assert!(said.contains("Valid: 2, Invalid: 1"), "{said}");
    }
}
