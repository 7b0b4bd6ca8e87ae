//! `trash`: what the nodes keep is listed over all of them; what is restored or deleted is shown first, and asked about.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::objects_api::ObjectsApi;
use crate::rights;
use crate::tool::{Answer, run};

/// Kept copies of the nodes, `n1` and `n2` each a `cache`, `n2` a `models` too. Gives what the plugins were told.
async fn cluster() -> (ObjectsApi, Arc<Mutex<Vec<String>>>) {
    let api = ObjectsApi::start().await;
    for node in ["n1", "n2"] {
        api.put(
            &format!("/api/v1/namespaces/per-node/pods/plugin-{node}"),
            json!({
                "metadata": {"namespace": "per-node", "name": format!("plugin-{node}"), "uid": node,
                             "labels": {"app.kubernetes.io/name": "per-node"}},
                "spec": {"nodeName": node, "containers": [{"name": "per-node"}]},
                "status": {"phase": "Running"},
            }),
        );
    }
    let told = Arc::<Mutex<Vec<String>>>::default();
    let record = told.clone();
    api.run_commands(Arc::new(move |pod, words| match words.join(" ").as_str() {
        "/per-node trash ls -o json" => Some((0, listed(pod).to_string(), String::new())),
        other => {
            record.lock().expect("no panic").push(format!("{pod} {other}"));
            Some((0, format!("done: {other}\n"), String::new()))
        }
    }));
    (api, told)
}

fn listed(pod: &str) -> Value {
    let copy = |entry: &str, handle: &str| {
        json!({"entry": entry, "handle": handle, "removed": "2026-11-30T00:53:20Z", "bytes": 4096,
               "leftSeconds": 3600})
    };
    match pod {
        "plugin-n1" => json!({"version": 1, "kept": [copy("t17", "cache")]}),
        _ => json!({"version": 1, "kept": [copy("t17", "models"), copy("t18", "cache")]}),
    }
}

fn take(told: &Mutex<Vec<String>>) -> Vec<String> {
    let mut told = std::mem::take(&mut *told.lock().expect("no panic"));
    told.sort();
    told
}

#[tokio::test]
async fn c26_kept_copies_are_listed_over_all_nodes() {
    let (api, told) = cluster().await;
    let answer = run(&api, &["trash", "ls"]).await;
    let out = "HANDLE   NODE   ENTRY   REMOVED                SIZE    LEFT\n\
               cache    n1     t17     2026-11-30T00:53:20Z   4.0Ki   60m\n\
               cache    n2     t18     2026-11-30T00:53:20Z   4.0Ki   60m\n\
               models   n2     t17     2026-11-30T00:53:20Z   4.0Ki   60m\n";
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&answer.out), sorted(out));
    let answer = run(&api, &["trash", "ls", "cache", "--node=n2", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!((&list["apiVersion"], &list["kind"]), (&"per-node.liken.sh/v1".into(), &"Trash".into()));
    assert_eq!(list["kept"].as_array().map(Vec::len), Some(1));
    assert_eq!((&list["kept"][0]["node"], &list["kept"][0]["entry"]), (&"n2".into(), &"t18".into()));
    assert_eq!(run(&api, &["trash", "ls", "other"]).await.out, "no copy other is kept\n");
    assert_eq!(take(&told), [""; 0]);
}

#[tokio::test]
async fn c26_what_is_restored_is_shown_first_and_only_where_it_is_kept() {
    let (api, told) = cluster().await;
    let answer = run(&api, &["trash", "restore", "cache"]).await;
    assert_eq!(answer.code, 5);
    assert!(answer.out.contains("t18") && !answer.out.contains("models"), "{}", answer.out);
    assert_eq!(take(&told), [""; 0]);
    let answer = run(&api, &["trash", "restore", "models", "--yes"]).await;
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.ends_with("n2: done: /per-node trash restore t17\n"), "{}", answer.out);
    assert_eq!(take(&told), ["plugin-n2 /per-node trash restore t17"]);
    assert_eq!(run(&api, &["trash", "restore", "cache", "-y"]).await.code, 0);
    assert_eq!(
        take(&told),
        ["plugin-n1 /per-node trash restore t17", "plugin-n2 /per-node trash restore t18"]
    );
    let nothing = run(&api, &["trash", "restore", "other", "-y"]).await;
    assert_eq!((nothing.code, nothing.err.as_str()), (1, "kubectl per-node: no node keeps a copy other\n"));
}

#[tokio::test]
async fn c26_an_entry_of_one_name_on_two_nodes_is_two_things() {
    let (api, told) = cluster().await;
    let answer = run(&api, &["trash", "empty", "t17", "--yes"]).await;
    assert_eq!(answer.code, 5);
    assert!(answer.err.contains("name the node with --node"), "{}", answer.err);
    assert_eq!(take(&told), [""; 0]);
    assert_eq!(run(&api, &["trash", "empty", "t17", "--node=n1", "--yes"]).await.code, 0);
    assert_eq!(take(&told), ["plugin-n1 /per-node trash empty t17"]);
}

#[tokio::test]
async fn c26_everything_that_was_shown_goes_only_where_that_is_said() {
    let (api, told) = cluster().await;
    assert_eq!(run(&api, &["trash", "empty", "--yes"]).await.code, 2);
    assert_eq!(run(&api, &["trash", "empty", "--all"]).await.code, 5);
    assert_eq!(take(&told), [""; 0]);
    assert_eq!(run(&api, &["trash", "empty", "--all", "--yes"]).await.code, 0);
    assert_eq!(
        take(&told),
        ["plugin-n1 /per-node trash empty t17", "plugin-n2 /per-node trash empty t18 t17"]
    );
}

#[tokio::test]
async fn c26_many_entries_are_named_in_questions_that_a_plugin_takes() {
    let (api, _) = cluster().await;
    let told = Arc::<Mutex<Vec<usize>>>::default();
    let record = told.clone();
    api.run_commands(Arc::new(move |_, words| {
        if words.iter().any(|word| word == "ls") {
            let copies = (0..301).map(|number| {
                json!({"entry": format!("t{number}"), "handle": format!("c{number}"),
                       "removed": "2026-11-30T00:53:20Z"})
            });
            let kept: Vec<Value> = copies.collect();
            return Some((0, json!({"version": 1, "kept": kept}).to_string(), String::new()));
        }
        record.lock().expect("no panic").push(words.len() - ["/per-node", "trash", "empty"].len());
        Some((0, "done\n".to_owned(), String::new()))
    }));
    assert_eq!(run(&api, &["trash", "empty", "--all", "--node=n1", "--yes"]).await.code, 0);
    assert_eq!(told.lock().expect("no panic").iter().sum::<usize>(), 301);
    assert!(told.lock().expect("no panic").iter().all(|&entries| entries <= 150));
}

#[tokio::test]
async fn c26_of_several_kept_copies_of_a_handle_one_must_be_named() {
    let (api, told) = cluster().await;
    let record = told.clone();
    api.run_commands(Arc::new(move |_, words| {
        let copy =
            |entry: &str| json!({"entry": entry, "handle": "cache", "removed": "2026-11-30T00:53:20Z"});
        if words.iter().any(|word| word == "ls") {
            let list = json!({"version": 1, "kept": [copy("t1"), copy("t2")]});
            return Some((0, list.to_string(), String::new()));
        }
        record.lock().expect("no panic").push(words.join(" "));
        Some((0, "done\n".to_owned(), String::new()))
    }));
    let answer = run(&api, &["trash", "restore", "cache", "--node=n1", "--yes"]).await;
    assert_eq!(answer.code, 5);
    assert!(answer.err.contains("several copies of cache"), "{}", answer.err);
    assert_eq!(run(&api, &["trash", "restore", "t2", "--node=n1", "--yes"]).await.code, 0);
    assert_eq!(take(&told), ["/per-node trash restore t2"]);
}

#[tokio::test]
async fn c26_a_plugin_that_refuses_is_said_in_its_words() {
    let (api, _) = cluster().await;
    api.run_commands(Arc::new(|pod, words| {
        if words.iter().any(|word| word == "ls") {
            return Some((0, listed(pod).to_string(), String::new()));
        }
        Some((1, String::new(), "per-node: not restored: no PersistentVolume names cache\n".to_owned()))
    }));
    let answer = run(&api, &["trash", "restore", "cache", "--node=n1", "--yes"]).await;
    assert_eq!(answer.code, 1);
    let refusal = "the node n1: its plugin refuses: not restored: no PersistentVolume names cache\n";
    assert!(answer.err.ends_with(refusal), "{}", answer.err);
}

#[tokio::test]
async fn c26_an_older_plugin_is_named_and_the_others_are_listed() {
    let (api, _) = cluster().await;
    api.run_commands(Arc::new(|pod, _| {
        if pod == "plugin-n1" {
            return Some((2, String::new(), "per-node: unrecognized subcommand 'trash'\n".to_owned()));
        }
        Some((0, listed(pod).to_string(), String::new()))
    }));
    let Answer { code, out, err } = run(&api, &["trash", "ls"]).await;
    assert_eq!(code, 3);
    assert!(
        out.contains("models") && err.contains("the node n1: its plugin refuses: unrecognized"),
        "{out}{err}"
    );
}

#[tokio::test]
async fn c26_where_a_node_was_not_seen_nothing_is_said_of_it() {
    let (api, _) = cluster().await;
    let labels = json!({"kubernetes.io/os": "linux"});
    api.put("/api/v1/nodes/n3", json!({"metadata": {"name": "n3", "labels": labels}}));
    let Answer { code, out, err } = run(&api, &["trash", "ls", "other"]).await;
    assert_eq!((code, out.as_str()), (3, "no copy other is kept on the nodes that were seen (2)\n"));
    assert!(err.contains("no plugin runs on n3"), "{err}");
    // As while a plugin's container restarts.
    api.run_commands(Arc::new(|pod, _| match pod {
        "plugin-n1" => Some((137, String::new(), String::new())),
        pod => Some((0, listed(pod).to_string(), String::new())),
    }));
    let Answer { code, out, err } = run(&api, &["trash", "restore", "other", "--yes"]).await;
    assert_eq!((code, out.as_str()), (3, "no copy other is kept on the nodes that were seen (1)\n"));
    assert!(err.contains("ended before it said anything"), "{err}");
}

#[tokio::test]
async fn each_right_is_needed_and_named_where_it_is_missing() {
    rights::check(&cluster().await.0, "trash", &["trash", "ls"]).await;
}
