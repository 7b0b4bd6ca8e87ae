//! The rights of `kubectl per-node` that docs/kubectl.md lists: with exactly these each command finds nothing missing, and with
//! one less it names that one. Each is held by a service account of its own, so nothing is taken from anybody meanwhile.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::api;
use crate::case::{Case, run};
use crate::cluster::cluster;
use crate::manifest;
use crate::rights_table::{Right, rights_of};
use crate::tool::{Ui, tool_as};
use crate::wait::wait_until;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MANY: &str = "ReadWriteMany";
/// Where the plugins are.
const PLUGINS: &str = "per-node";
/// Exec asks for the verb `create` too since this version.
const EXEC_CREATES_SINCE_MINOR: u32 = 35;
/// How every sentence about a missing right begins.
const FORBIDDEN: &str = "you may not ";

/// One verb on one resource in one place; nowhere in particular where that is the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    verb: String,
    resource: String,
    namespace: Option<String>,
}

impl Rule {
    /// The rules that a line of the table is for a command.
    fn of(case: &Case, command: &str, right: &Right) -> Vec<Rule> {
        let own = Some(case.name.clone());
        let plugins = Some(PLUGINS.to_owned());
        let namespaces = match right.place.as_str() {
            "cluster" => vec![None],
            "the claim's namespace" | "the pod's namespace" => vec![own],
            "the plugin's namespace" => vec![plugins],
            "the plugin's namespace; for `why` also the pod's" if command == "why" => vec![plugins, own],
            "the plugin's namespace; for `why` also the pod's" => vec![plugins],
            "the pod's namespace; for `doctor` all" if command == "doctor" => vec![None],
            "the pod's namespace; for `doctor` all" => vec![own],
            other => panic!("docs/kubectl.md names a place that nothing is known of: {other}"),
        };
        let rule = |namespace| Rule { verb: right.verb.clone(), resource: right.resource.clone(), namespace };
        namespaces.into_iter().map(rule).collect()
    }

    /// As RBAC has it.
    fn object(&self) -> Value {
        let group = match self.resource.as_str() {
            "persistentvolumes"
            | "persistentvolumeclaims"
            | "pods"
            | "pods/exec"
            | "pods/proxy"
            | "events"
            | "nodes" => "",
            "deployments" | "daemonsets" => "apps",
            "csidrivers" | "csinodes" => "storage.k8s.io",
            "subjectaccessreviews" => "authorization.k8s.io",
            other => panic!("docs/kubectl.md names a resource that nothing is known of: {other}"),
        };
        json!({"apiGroups": [group], "resources": [self.resource], "verbs": [self.verb]})
    }

    /// Whether a sentence says that this one is missing.
    fn is_named_in(&self, sentence: &str) -> bool {
        let place = self.namespace.as_ref().map(|namespace| format!(" in the namespace {namespace}"));
        sentence.contains(&format!("{} {}", self.verb, self.resource))
            && place.is_none_or(|place| sentence.contains(&place))
    }
}

/// What is made outside of the case's namespace goes with this.
struct Roles<'a>(&'a Case);

impl Drop for Roles<'_> {
    fn drop(&mut self) {
        let selector = format!("--selector=case={}", self.0.name);
        let cluster = cluster();
        cluster.kubectl_with(&["delete", "clusterroles,clusterrolebindings", &selector], "");
        cluster.kubectl_with(&["delete", "roles,rolebindings", "--namespace", PLUGINS, &selector], "");
    }
}

/// A service account with these rules and no others. Gives back its kubeconfig.
fn account(case: &Case, name: &str, rules: &[&Rule]) -> PathBuf {
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", case.name);
    api().create(&accounts, &json!({"metadata": {"name": name}}));
    let mut namespaces: Vec<_> = rules.iter().map(|rule| rule.namespace.as_deref()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    for namespace in namespaces {
        let of_namespace = rules.iter().filter(|rule| rule.namespace.as_deref() == namespace);
        let of_namespace: Vec<Value> = of_namespace.map(|rule| rule.object()).collect();
        let (kind, path) = match namespace {
            None => ("ClusterRole", RBAC.to_owned() + "/cluster"),
            Some(namespace) => ("Role", format!("{RBAC}/namespaces/{namespace}/")),
        };
        let metadata = json!({"name": format!("{}-{name}", case.name), "labels": {"case": case.name}});
        api().create(&format!("{path}roles"), &json!({"metadata": metadata, "rules": of_namespace}));
        let binding = json!({
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": case.name}],
        });
        api().create(&format!("{path}rolebindings"), &binding);
    }
    let token = api().create(&format!("{accounts}/{name}/token"), &json!({"spec": {}}));
    let kubeconfig = cluster().kubectl(&["config", "view", "--raw", "--minify", "-o", "json"]);
    let mut kubeconfig: Value = serde_json::from_str(&kubeconfig).expect("JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token["status"]["token"]});
    let path = cluster().kubeconfig().with_file_name(format!("{}-{name}.kubeconfig", case.name));
    std::fs::write(&path, kubeconfig.to_string()).expect("written");
    path
}

/// What a command says of rights that it lacks, a sentence each.
fn missing(kubeconfig: &Path, arguments: &[&str]) -> Vec<String> {
    let told = match arguments {
        ["ui"] => Ui::start(kubeconfig).state(),
        arguments => {
            let output = tool_as(kubeconfig, arguments);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!told.contains("panicked"), "{told}");
            if told.contains(FORBIDDEN) {
                assert_ne!(output.status.code(), Some(0), "{arguments:?}: {told}");
            }
            told
        }
    };
    // JSON has no line ends of its own.
    let sentences =
        told.split(FORBIDDEN).skip(1).map(|rest| rest.split(['\n', '"']).next().unwrap_or_default());
    sentences.map(str::to_owned).collect()
}

/// Holds one command to the table.
fn check(case: &Case, arguments: &[&str]) {
    let command = arguments[0];
    let rules: Vec<Rule> =
        rights_of(command).iter().flat_map(|right| Rule::of(case, command, right)).collect();
    for (number, without) in rules.iter().enumerate() {
        let rest: Vec<&Rule> = rules.iter().filter(|rule| *rule != without).collect();
        let kubeconfig = account(case, &format!("{command}-{number}"), &rest);
        let is_needed = match without.resource.as_str() {
            "pods/exec" => without.verb != "create" || exec_creates(),
            // Where nothing waits nobody is asked which copies would go.
            "pods/proxy" => command != "confirm",
            _ => true,
        };
        let mut told = Vec::new();
        // The API server hears of a new role a moment later.
        wait_until(&format!("{command} to name {without:?} alone"), || {
            let now = missing(&kubeconfig, arguments);
            if now != told {
                println!("{command} without {without:?}: {now:?}");
                told = now;
            }
            match is_needed {
                true => !told.is_empty() && told.iter().all(|sentence| without.is_named_in(sentence)),
                false => told.is_empty(),
            }
        });
    }
    let all: Vec<&Rule> = rules.iter().collect();
    let kubeconfig = account(case, command, &all);
    wait_until(&format!("{command} to find nothing missing"), || missing(&kubeconfig, arguments).is_empty());
}

fn exec_creates() -> bool {
    let version = api().get("/version").expect("the version");
    let minor = version["minor"].as_str().unwrap_or_default().trim_end_matches('+').to_owned();
    minor.parse::<u32>().expect("a number") >= EXEC_CREATES_SINCE_MINOR
}

/// A Deployment's pod, put on a node, over a claim that is bound and one that is not: who asks why it waits looks at everything.
fn waiting_pod(case: &Case) -> String {
    let handle = case.bound_volume("v", MANY);
    case.apply(&manifest::claim("unbound", MANY));
    let mut spec = manifest::pod("none", None, &handle, "true")["spec"].take();
    spec["nodeName"] = json!(case.cluster.first.name);
    spec["restartPolicy"] = json!("Always");
    let unbound = json!({"name": "unbound", "persistentVolumeClaim": {"claimName": "unbound"}});
    spec["volumes"].as_array_mut().expect("volumes").push(unbound);
    case.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "waits"},
        "spec": {
            "selector": {"matchLabels": {"app": "waits"}},
            "template": {"metadata": {"labels": {"app": "waits"}}, "spec": spec},
        },
    }));
    let path = format!("/api/v1/namespaces/{}/pods?labelSelector=app%3Dwaits", case.name);
    crate::wait::wait_for("the pod", || {
        Some(api().items(&path).first()?["metadata"]["name"].as_str()?.to_owned())
    })
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn with_the_documented_rights_and_one_less_the_commands_that_only_look() {
    run("rights-look", |case| {
        let _roles = Roles(case);
        let pod = waiting_pod(case);
        check(case, &["status"]);
        check(case, &["why", &pod, "-n", &case.name]);
        check(case, &["doctor"]);
        check(case, &["ui"]);
    });
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn with_the_documented_rights_and_one_less_the_commands_that_act() {
    run("rights-act", |case| {
        let _roles = Roles(case);
        let handle = case.bound_volume("v", MANY);
        case.delete("pvc", &handle);
        let phase = || case.kubectl(&["get", "pv", &handle, "-o", "jsonpath={.status.phase}"]);
        wait_until("the volume to be released", || phase() == "Released");
        check(case, &["release", &handle, "--yes"]);
        wait_until("the volume to be free", || phase() == "Available");
        check(case, &["confirm", "--show"]);
        check(case, &["trash", "ls"]);
    });
}
