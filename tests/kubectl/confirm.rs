//! `confirm`: what waits is shown first, and only where a person agrees the plugin is told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use per_node::proto::report::Copy;
use serde_json::json;

use crate::cluster::{copy, report};
use crate::objects_api::{Backend, ObjectsApi};
use crate::rights;
use crate::tool::{Answer, run};

const REVISION: &str = "removals wait for a confirmation: the API server's revision went back";
const SEEN: &str = "confirmed as it is by: per-node confirm --seen=00c0ffee00c0ffee";

/// How what would go is told of a node that has one copy without a PersistentVolume.
const ORPHANS: &str = "       what would go, as far as is known now: 1 copies that no PersistentVolume names\n         wanted (1.5Ki)\n";

/// What a node tells of its copies: one without a PersistentVolume, one with.
fn copies(node: &str) -> Backend {
    let of = |handle: &str, orphan: bool| Copy { orphan: Some(orphan), ..copy(handle, 1536, 3) };
    let told = report(node, vec![of("bound", false), of("wanted", true)]);
    let told = serde_json::to_string(&told).expect("JSON");
    Backend::Answer(Arc::new(move |path, _| {
        assert_eq!(path, "/copies");
        (200, told.clone())
    }))
}

/// A cluster of plugins on these nodes; removals wait on those of `waiting`. Gives the nodes that were confirmed.
async fn cluster(nodes: &[&str], waiting: &[&str]) -> (ObjectsApi, Arc<Mutex<BTreeSet<String>>>) {
    let api = ObjectsApi::start().await;
    for node in nodes {
        api.put(
            &format!("/api/v1/namespaces/per-node/pods/plugin-{node}"),
            json!({
                "metadata": {"namespace": "per-node", "name": format!("plugin-{node}"), "uid": node,
                             "labels": {"app.kubernetes.io/name": "per-node"}},
                "spec": {"nodeName": node, "containers": [{"name": "per-node", "args": ["serve", "--store=/data"]}]},
                "status": {"phase": "Running"},
            }),
        );
        api.serve_pod("per-node", &format!("plugin-{node}"), copies(node));
    }
    let confirmed = Arc::<Mutex<BTreeSet<String>>>::default();
    let waiting: BTreeSet<String> = waiting.iter().map(|node| format!("plugin-{node}")).collect();
    let told = confirmed.clone();
    api.run_commands(Arc::new(move |pod, words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let waits = waiting.contains(pod) && !told.lock().expect("no panic").contains(pod);
        let out = match words.as_slice() {
            ["/per-node", "confirm", "--show", "--store=/data"] if waits => format!("{REVISION}\n{SEEN}\n"),
            ["/per-node", "confirm", "--seen=00c0ffee00c0ffee", "--store=/data"] if waits => {
                told.lock().expect("no panic").insert(pod.to_owned());
                "confirmed; removals go on, each with a proof of its own. It was: …\n".to_owned()
            }
            ["/per-node", "confirm", "--show", "--store=/data"] => {
                "nothing waits for a confirmation\n".to_owned()
            }
            other => panic!("{other:?}"),
        };
        Some((0, out, String::new()))
    }));
    (api, confirmed)
}

fn names(confirmed: &Mutex<BTreeSet<String>>) -> Vec<String> {
    confirmed.lock().expect("no panic").iter().cloned().collect()
}

#[tokio::test]
async fn c22_what_waits_is_shown_by_node_and_without_a_yes_nobody_is_told() {
    let (api, confirmed) = cluster(&["n1", "n2", "n3"], &["n1", "n3"]).await;
    let revision = "the API server's revision went back";
    let shown = format!("NODE   WAITS FOR\nn1     {revision}\n{ORPHANS}n3     {revision}\n{ORPHANS}");
    let answer = run(&api, &["confirm"]).await;
    assert_eq!((answer.code, answer.out.as_str()), (5, shown.as_str()));
    assert!(answer.err.contains("give --yes"), "{}", answer.err);
    let answer = run(&api, &["confirm", "--show"]).await;
    assert_eq!(answer, Answer { code: 4, out: shown, err: String::new() });
    assert_eq!(names(&confirmed), [""; 0]);
}

#[tokio::test]
async fn c22_a_yes_confirms_on_the_nodes_that_wait_and_on_no_other() {
    let (api, confirmed) = cluster(&["n1", "n2", "n3"], &["n1", "n3"]).await;
    let answer = run(&api, &["confirm", "--node=n3", "--yes"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(names(&confirmed), ["plugin-n3"]);
    let answer = run(&api, &["confirm", "-y"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("\nn1: confirmed; removals go on"), "{}", answer.out);
    assert_eq!(names(&confirmed), ["plugin-n1", "plugin-n3"]);
    let answer = run(&api, &["confirm", "-y"]).await;
    let nothing = "nothing waits for a confirmation on 3 nodes\n".to_owned();
    assert_eq!(answer, Answer { code: 0, out: nothing, err: String::new() });
}

#[tokio::test]
async fn copies_that_wait_are_shown_a_line_each() {
    let (api, _) = cluster(&["n1"], &[]).await;
    api.run_commands(Arc::new(|_, _| {
        let out = "removals wait for a confirmation: too many at once\n2 copies:\n  cache\n  models\n";
        Some((0, out.to_owned(), String::new()))
    }));
    let answer = run(&api, &["confirm", "--show"]).await;
    assert_eq!(
        answer.out,
        format!(
            "NODE   WAITS FOR\nn1     too many at once\n       2 copies:\n         cache\n         models\n{ORPHANS}"
        )
    );
}

#[tokio::test]
async fn c22_where_it_cannot_be_read_what_would_go_that_is_said_before_it_asks() {
    let (api, confirmed) = cluster(&["n1", "n2"], &["n1", "n2"]).await;
    api.serve_pod("per-node", "plugin-n1", Backend::Hangs);
    let mut unsynced = report("n2", vec![copy("a", 1, 1)]);
    unsynced.copies[0].orphan = None;
    let unsynced = serde_json::to_string(&unsynced).expect("JSON");
    api.serve_pod("per-node", "plugin-n2", Backend::Answer(Arc::new(move |_, _| (200, unsynced.clone()))));
    let answer = run(&api, &["confirm", "--node-deadline=2s"]).await;
    assert_eq!(answer.code, 5);
    let told = "what would go, as far as is known now: not read: ";
    for why in ["no answer within 2s\n", "of 1 copies its plugin has not read the PersistentVolumes\n"] {
        assert!(answer.out.contains(&format!("{told}{why}")), "{}", answer.out);
    }
    assert_eq!(names(&confirmed), [""; 0]);
}

#[tokio::test]
async fn a_node_that_cannot_be_asked_is_named_and_the_others_are_told() {
    let (api, confirmed) = cluster(&["n1", "n2"], &["n1"]).await;
    let path = "/api/v1/namespaces/per-node/pods/plugin-n2";
    let mut pod = api.object(path).expect("the pod");
    pod["status"]["phase"] = json!("Pending");
    api.put(path, pod);
    let answer = run(&api, &["confirm", "--yes"]).await;
    assert_eq!(answer.code, 3);
    assert!(answer.err.contains("not seen: the node n2: its pod is Pending"), "{}", answer.err);
    assert_eq!(names(&confirmed), ["plugin-n1"]);
}

#[tokio::test]
async fn a_plugin_that_refuses_or_hangs_is_said_in_its_words() {
    let (api, _) = cluster(&["n1"], &[]).await;
    api.run_commands(Arc::new(|_, words| {
        if words.iter().any(|word| word == "--show") {
            return Some((0, format!("{REVISION}\n"), String::new()));
        }
        Some((
            1,
            String::new(),
            "per-node: not confirmed: the API server gave no complete answer\n".to_owned(),
        ))
    }));
    let answer = run(&api, &["confirm", "--yes"]).await;
    assert_eq!(answer.code, 1);
    let refusal = "the node n1: its plugin refuses: not confirmed: the API server gave no complete answer\n";
    assert!(answer.err.ends_with(refusal), "{}", answer.err);
    api.run_commands(Arc::new(|_, _| None));
    let answer = run(&api, &["confirm", "--yes", "--node-deadline=50ms"]).await;
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("nothing came back within 50ms"), "{}", answer.err);
}

#[tokio::test]
async fn no_plugin_is_said_with_the_flag_that_may_be_wrong() {
    let (api, _) = cluster(&["n1"], &[]).await;
    for arguments in [&["confirm", "--node=n9"][..], &["confirm", "-n", "elsewhere"]] {
        let answer = run(&api, arguments).await;
        assert_eq!((answer.code, answer.out.as_str()), (1, ""));
        assert!(
            answer.err.contains("no plugin's pod") && answer.err.contains("-n names another"),
            "{}",
            answer.err
        );
    }
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    let (api, _) = cluster(&["n1"], &["n1"]).await;
    rights::check(&api, "confirm", &["confirm", "--show"]).await;
}
