//! `status`: what it shows, what it says is missing, and its exit codes.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::cluster::{copy, healthy, plugin, refusal, report, tells, volume};
use crate::objects_api::{Backend, ObjectsApi};
use crate::rights;
use crate::tool::{Answer, command, run};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

#[track_caller]
fn check(answer: &Answer, code: i32, out: &str, err: &str) {
    assert_eq!(answer.out.trim_end(), out.trim(), "{}", answer.err);
    assert_eq!((answer.err.trim_end(), answer.code), (err.trim(), code));
}

#[tokio::test]
async fn the_whole_cluster_is_one_table_of_volumes_and_nodes() {
    check(
        &run(&healthy().await, &["status"]).await,
        0,
        "
VOLUME        PHASE      NODE     SIZE    HOLDER        SINCE   REFUSED
build-cache   Bound      node-1   1.2Gi   ci/runner-0   3h12m   ci/runner-1 x42 (90s ago)
build-cache   Bound      node-2   0       ci/runner-2   -       -
forgotten     Orphan     node-1   512     -             -       -
models        Released   node-2   -       -             -       -
unused        Bound      -        -       -             -       -
",
        "",
    );
}

#[tokio::test]
async fn wide_adds_handle_claim_inodes_and_why_a_pod_was_refused() {
    check(
        &run(&healthy().await, &["status", "-o", "wide"]).await,
        0,
        "
VOLUME        HANDLE        PHASE      CLAIM            CLAIM-PHASE   NODE     SIZE    INODES   MEASURED   HOLDER        SINCE   REFUSED                     WHY
build-cache   build-cache   Bound      ci/build-cache   Bound         node-1   1.2Gi   20412    30m        ci/runner-0   3h12m   ci/runner-1 x42 (90s ago)   volume build-cache is held on this node by pod ci/runner-0
build-cache   build-cache   Bound      ci/build-cache   Bound         node-2   0       1        30m        ci/runner-2   -       -                           -
forgotten     forgotten     Orphan     -                -             node-1   512     2        30m        -             -       -                           -
models        llm.v2        Released   ci/models        Missing       node-2   -       -        -          -             -       -                           -
unused        unused        Bound      ci/unused        Bound         -        -       -        -          -             -       -                           -
",
        "",
    );
}

#[tokio::test]
async fn one_volume_is_found_by_its_name_and_by_its_handle() {
    let api = healthy().await;
    for asked in ["models", "llm.v2"] {
        check(
            &run(&api, &["status", asked]).await,
            0,
            "
VOLUME   PHASE      NODE     SIZE   HOLDER   SINCE   REFUSED
models   Released   node-2   -      -        -       -
",
            "",
        );
    }
    check(
        &run(&api, &["status", "nobody"]).await,
        1,
        "",
        "kubectl per-node: no PersistentVolume of per-node.liken.sh and no copy is called nobody",
    );
}

#[tokio::test]
async fn json_and_yaml_are_the_documented_schema() {
    let api = healthy().await;
    let answer = run(&api, &["status", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!(
        (&json["apiVersion"], &json["kind"]),
        (&"per-node.liken.sh/v1".into(), &"ClusterStatus".into())
    );
    let volumes = json["volumes"].as_array().expect("volumes");
    let handles: Vec<&str> =
        volumes.iter().map(|volume| volume["handle"].as_str().expect("a handle")).collect();
    assert_eq!(handles, ["build-cache", "forgotten", "llm.v2", "unused"]);
    let held = &volumes[0]["copies"][0];
    assert_eq!((&held["node"], &held["bytes"]), (&"node-1".into(), &1_288_490_189_u64.into()));
    assert_eq!(held["holders"][0]["since"], "2026-11-29T23:48:00Z");
    assert_eq!(volumes[0]["refusals"][0]["count"], 42);
    assert_eq!((&volumes[0]["orphan"], &volumes[1]["orphan"]), (&false.into(), &true.into()));
    assert_eq!(volumes[2]["persistentVolumes"][0]["claim"]["phase"], "Missing");
    assert_eq!((json["nodes"].as_array().map(Vec::len), &json["missing"]), (Some(2), &Value::Array(vec![])));
    let yaml = run(&api, &["status", "-o", "yaml"]).await;
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml.out).expect("YAML"), json);
    // docs/kubectl.md has every field of it by its name.
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kubectl.md")).expect("docs");
    let mut open = vec![&json];
    while let Some(value) = open.pop() {
        open.extend(value.as_array().into_iter().flatten());
        for (name, value) in value.as_object().into_iter().flatten() {
            assert!(docs.contains(&format!("`{name}`")), "{name} is not in docs/kubectl.md");
            open.push(value);
        }
    }
}

#[tokio::test]
async fn nodes_that_do_not_answer_are_named_and_the_rest_is_shown() {
    let api = ObjectsApi::start().await;
    volume(&api, "data", "data", "Bound", Some("Bound"));
    plugin(&api, "node-1", "Running", tells(report("node-1", vec![copy("data", 2048, 3)])));
    plugin(&api, "node-2", "Running", Backend::Refuses);
    plugin(&api, "node-3", "Running", Backend::Hangs);
    plugin(&api, "node-4", "Pending", Backend::Refuses);
    let mut newer = report("node-5", vec![]);
    newer.api_version = "per-node.liken.sh/v2".to_owned();
    plugin(&api, "node-5", "Running", tells(newer));
    plugin(&api, "node-6", "Running", Backend::Answer(std::sync::Arc::new(|_, _| (404, String::new()))));
    plugin(
        &api,
        "node-7",
        "Running",
        Backend::Answer(std::sync::Arc::new(|_, _| (200, "<html>".to_owned()))),
    );
    // A pod that took the place of another one has another UID.
    let other = report("node-1", vec![]);
    plugin(&api, "node-8", "Running", tells(other));
    let mut foreign = report("node-9", vec![copy("data", 1, 1)]);
    foreign.driver = "other.example".to_owned();
    plugin(&api, "node-9", "Running", tells(foreign));
    for node in ["node-1", "node-10"] {
        let labels = json!({"kubernetes.io/os": "linux"});
        api.put(&format!("/api/v1/nodes/{node}"), json!({"metadata": {"name": node, "labels": labels}}));
    }
    let answer = run(&api, &["status", "--node-deadline", "1s"]).await;
    assert_eq!(api.named_only(), ["nodes".to_owned()].into(), "a thousand whole nodes are tens of megabytes");
    check(
        &answer,
        3,
        "
VOLUME   PHASE   NODE     SIZE    HOLDER   SINCE   REFUSED
data     Bound   node-1   2.0Ki   -        -       -
",
        "
kubectl per-node: missing: no plugin runs on node-10: copies that are there are not seen
kubectl per-node: missing: node-2: the API server does not reach its plugin (503)
kubectl per-node: missing: node-3: no answer within 1s
kubectl per-node: missing: node-4: its pod is Pending
kubectl per-node: missing: node-5: its plugin speaks per-node.liken.sh/v2 NodeCopies, which this tool cannot read: use a newer one
kubectl per-node: missing: node-6: its plugin serves no /copies: it runs without --http-copies, or is older than that
kubectl per-node: missing: node-7: its plugin's answer cannot be read
kubectl per-node: missing: node-8: its plugin does not tell: no key
kubectl per-node: missing: node-9: its plugin serves other.example, not the driver that was asked about: --driver-name and -n go together
",
    );
}

#[tokio::test]
async fn what_a_plugin_says_of_itself_is_told_beside_the_table() {
    let api = ObjectsApi::start().await;
    let mut waiting = report("node-1", vec![]);
    waiting.sweep.as_mut().expect("told").notes = vec!["removals wait for a person".to_owned()];
    waiting.refusals = vec![refusal("not-here", "web-0", 1, "2026-11-30T02:59:58Z")];
    plugin(&api, "node-1", "Running", tells(waiting));
    check(
        &run(&api, &["status"]).await,
        0,
        "
VOLUME     PHASE    NODE     SIZE   HOLDER   SINCE   REFUSED
not-here   Orphan   node-1   -      -        -       ci/web-0 x1 (2s ago)
",
        "kubectl per-node: note: node-1: removals wait for a person",
    );
}

#[tokio::test]
async fn many_copies_of_one_node_come_in_pages() {
    let api = ObjectsApi::start().await;
    let page = |first: usize, after: Option<&str>| {
        let mut page = report("node-1", (first..first + 2).map(|n| copy(&format!("c{n}"), 0, 1)).collect());
        page.after = after.map(str::to_owned);
        serde_json::to_string(&page).expect("JSON")
    };
    let (one, two) = (page(1, Some("c2")), page(3, None));
    let backend = Backend::Answer(std::sync::Arc::new(move |path, _| {
        (200, if path.ends_with("after=c2") { two.clone() } else { one.clone() })
    }));
    plugin(&api, "node-1", "Running", backend);
    let answer = run(&api, &["status"]).await;
    let names: Vec<&str> = answer.out.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["c1", "c2", "c3", "c4"]);
}

#[tokio::test]
async fn without_any_plugin_the_answer_is_partial_and_without_an_api_server_there_is_none() {
    let api = ObjectsApi::start().await;
    volume(&api, "data", "data", "Bound", Some("Bound"));
    let answer = run(&api, &["status", "-n", "elsewhere"]).await;
    assert_eq!(answer.code, 3);
    assert!(answer.out.contains("data     Bound"), "{}", answer.out);
    assert!(answer.err.contains("no plugin's pod in the namespace elsewhere"), "{}", answer.err);
    let nowhere = tempfile::NamedTempFile::new().expect("a file");
    let (config, address) = (api.kubeconfig(), api.address());
    drop(api);
    std::fs::write(nowhere.path(), config).expect("written");
    let output = command(nowhere.path(), &["status"]).output().await.expect("it runs");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let told = String::from_utf8_lossy(&output.stderr);
    let start = "kubectl per-node: list persistentvolumes: the API server cannot be reached: http://";
    assert!(told.starts_with(&format!("{start}{address}: ")), "{told}");
}

#[tokio::test]
async fn watching_appends_what_has_changed_where_nobody_looks_at_a_terminal() {
    let api = healthy().await;
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(kubeconfig.path(), api.kubeconfig()).expect("written");
    let mut command =
        command(kubeconfig.path(), &["status", "build-cache", "--watch", "--watch-every", "10ms"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = async || {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line came");
        line.expect("readable").expect("it goes on")
    };
    assert!(next().await.starts_with("VOLUME"));
    assert!(next().await.contains("node-1") && next().await.contains("node-2"));
    plugin(&api, "node-2", "Running", tells(report("node-2", vec![copy("build-cache", 4096, 2)])));
    let changed = next().await;
    assert!(changed.contains("node-2") && changed.contains("4.0Ki"), "{changed}");
    volume(&api, "build-cache", "build-cache", "Released", Some("Bound"));
    for node in ["node-1", "node-2"] {
        let changed = next().await;
        assert!(changed.contains(node) && changed.contains("Released"), "{changed}");
    }
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    rights::check(&healthy().await, "status", &["status"]).await;
}
