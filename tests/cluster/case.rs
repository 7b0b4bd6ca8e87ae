//! One case: a namespace of its own, the things users do in it, a report when it fails, and a check at its end that nothing of
//! it is left on the nodes.

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use serde_json::{Value, json};

use super::api::api;
use super::cluster::{Cluster, cluster};
use super::manifest;
use super::node::Node;
use super::room::Room;
use super::wait::{KUBECTL_PATIENCE, wait_for, wait_until};

/// What a case works with.
pub struct Case {
    /// The case's name, which is also that of its namespace and the start of its handles.
    pub name: String,
    pub cluster: &'static Cluster,
    handles: RefCell<Vec<String>>,
}

/// Runs a case in a namespace of its own. After a failure it prints the pods, the events and the plugins' logs; after a success
/// it deletes what the case made and checks that no pod, mount or copy of it stays.
pub fn run(name: &str, body: impl FnOnce(&Case)) {
    let case = Case { name: name.into(), cluster: cluster(), handles: RefCell::default() };
    let _room = Room::of(name);
    let began = Instant::now();
    case.begin();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        body(&case);
        case.leaves_nothing();
    }));
    // Past the test runner, which keeps what a case prints until it has failed.
    let ended = if outcome.is_ok() { "done" } else { "failed" };
    let _ = writeln!(std::io::stderr(), "{name}: {ended} after {} s", began.elapsed().as_secs());
    if let Err(panic) = outcome {
        case.report();
        case.clear();
        resume_unwind(panic);
    }
}

/// Breaks something that is not the case's own, runs `body`, and mends it whatever came of that.
pub fn broken(breaks: impl FnOnce(), body: impl FnOnce(), mends: impl FnOnce()) {
    breaks();
    let outcome = catch_unwind(AssertUnwindSafe(body));
    mends();
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

impl Case {
    fn begin(&self) {
        // That of a run before this one may still be on its way out.
        wait_until("the namespace to be new", || {
            self.cluster.kubectl_with(&["create", "namespace", &self.name], "").status.success()
        });
        wait_until("the namespace's account", || {
            api().get(&format!("/api/v1/namespaces/{}/serviceaccounts/default", self.name)).is_some()
        });
    }

    /// A handle of this case, known by its suffix. What it names must be gone from every node when the case has ended.
    pub fn handle(&self, suffix: &str) -> String {
        let handle = format!("{}-{suffix}", self.name);
        self.handles.borrow_mut().push(handle.clone());
        handle
    }

    /// kubectl in the case's namespace. Panics with its message where it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut all = vec!["--namespace", self.name.as_str()];
        all.extend_from_slice(arguments);
        self.cluster.kubectl(&all)
    }

    /// What `kubectl apply --server-side` does, in the case's namespace.
    pub fn apply(&self, object: &Value) {
        api().apply(&self.name, object);
    }

    /// A volume and its claim, both named like the handle, bound. Gives back the handle.
    pub fn bound_volume(&self, suffix: &str, mode: &str) -> String {
        self.bound_volume_of(manifest::DRIVER, suffix, mode)
    }

    /// The same of a driver of another name.
    pub fn bound_volume_of(&self, driver: &str, suffix: &str, mode: &str) -> String {
        let handle = self.handle(suffix);
        let mut volume = manifest::volume(&handle, &handle, mode, &self.name, &handle);
        volume["spec"]["csi"]["driver"] = driver.into();
        self.apply(&volume);
        self.apply(&manifest::claim(&handle, mode));
        self.wait_bound(&handle);
        handle
    }

    /// Waits until a claim is bound.
    pub fn wait_bound(&self, claim: &str) {
        let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/{claim}", self.name);
        wait_until("the claim to be bound", || {
            api().get(&path).is_some_and(|claim| claim["status"]["phase"] == "Bound")
        });
    }

    /// Makes a pod on a node and waits until it runs. Gives back its UID.
    pub fn running_pod(&self, name: &str, node: &Node, claim: &str, script: &str) -> String {
        self.apply(&manifest::pod(name, Some(node.name), claim, script));
        self.wait_running(name)
    }

    /// The pod of a name, where there is one.
    pub fn pod(&self, name: &str) -> Option<Value> {
        api().get(&format!("/api/v1/namespaces/{}/pods/{name}", self.name))
    }

    /// Waits until a pod runs. Gives back its UID.
    pub fn wait_running(&self, name: &str) -> String {
        wait_for(&format!("pod {name} to run"), || {
            let pod = self.pod(name)?;
            let running =
                pod["status"]["phase"] == "Running" && pod["status"]["containerStatuses"][0]["ready"] == true;
            running.then(|| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// `kubectl delete`, waiting until the object is gone.
    pub fn delete(&self, kind: &str, name: &str) {
        self.kubectl(&["delete", kind, name, KUBECTL_PATIENCE]);
    }

    /// `kubectl delete --wait=false`: the object may linger, as a volume does whose claim is bound.
    pub fn delete_at_once(&self, kind: &str, name: &str) {
        self.kubectl(&["delete", kind, name, "--wait=false"]);
    }

    /// Takes an object's finalizers away, as people do who do not want to wait.
    pub fn without_finalizers(&self, kind: &str, name: &str) {
        let patch = json!({"metadata": {"finalizers": null}}).to_string();
        self.kubectl(&["patch", kind, name, "--type=merge", "--patch", &patch]);
    }

    /// Deletes a claim and its volume, waiting until both are gone.
    pub fn delete_volume(&self, name: &str) {
        self.delete("pvc", name);
        self.delete("pv", name);
    }

    /// The driver's events on a pod, of one reason, in the order they were made.
    pub fn events(&self, pod: &str, reason: &str) -> Vec<Value> {
        let selector = format!("fieldSelector=involvedObject.name%3D{pod},reason%3D{reason}");
        let mut events = api().items(&format!("/api/v1/namespaces/{}/events?{selector}", self.name));
        events.sort_by_key(|event| event["firstTimestamp"].as_str().unwrap_or_default().to_owned());
        events
    }

    /// Waits for an event of a reason on a pod. Gives back its message.
    pub fn wait_event(&self, pod: &str, reason: &str) -> String {
        wait_for(&format!("an event {reason} on {pod}"), || {
            Some(self.events(pod, reason).first()?["message"].as_str()?.to_owned())
        })
    }

    /// Deletes all that the case made and checks that the nodes have forgotten it: no stuck pod, no mount, no copy.
    fn leaves_nothing(&self) {
        self.clear();
        let pods = format!("/api/v1/namespaces/{}/pods", self.name);
        wait_until("every pod of the case to end", || {
            api().get(&pods).is_some() && api().items(&pods).is_empty()
        });
        let volumes = format!("/api/v1/persistentvolumes?labelSelector=case%3D{}", self.name);
        wait_until("every volume of the case to go", || {
            api().get(&volumes).is_some() && api().items(&volumes).is_empty()
        });
        for handle in self.handles.borrow().iter() {
            for node in self.cluster.nodes() {
                wait_until(&format!("no mount of {handle} on {}", node.name), || {
                    node.mounts_of(handle).is_empty()
                });
                wait_until(&format!("no copy of {handle} on {}", node.name), || !node.copy(handle).exists());
            }
        }
    }

    /// Deletes all that the case made, in the order in which nothing waits for anything else.
    fn clear(&self) {
        let _ = self.cluster.kubectl_with(
            &[
                "--namespace",
                &self.name,
                "delete",
                "deployments,daemonsets,pods,pvc",
                "--all",
                KUBECTL_PATIENCE,
            ],
            "",
        );
        let of_case = format!("--selector=case={}", self.name);
        let _ = self.cluster.kubectl_with(&["delete", "pv", &of_case, KUBECTL_PATIENCE], "");
        let _ = self.cluster.kubectl_with(&["delete", "namespace", &self.name, "--wait=false"], "");
    }

    /// What a person would look at first.
    fn report(&self) {
        let show = |title: &str, arguments: &[&str]| {
            let output = self.cluster.kubectl_with(arguments, "");
            println!("---- {title}\n{}", String::from_utf8_lossy(&output.stdout));
        };
        println!("==== {} failed", self.name);
        show("pods", &["get", "pods", "--namespace", &self.name, "--output=wide"]);
        show("events", &["get", "events", "--namespace", &self.name, "--sort-by=.lastTimestamp"]);
        show("volumes", &["get", "pv", "--selector", &format!("case={}", self.name)]);
        show("plugins", &["get", "pods", "--namespace=per-node", "--output=wide"]);
        for node in self.cluster.nodes() {
            let daemon_set = format!("daemonset/{}", node.daemon_set);
            show(
                &format!("plugin on {}", node.name),
                &["logs", "--namespace=per-node", &daemon_set, "--tail=60"],
            );
            for handle in self.handles.borrow().iter() {
                for mount in node.mounts_of(handle) {
                    println!("{}: {} at {} ({})", node.name, mount.root, mount.target, mount.options);
                }
            }
        }
    }
}
