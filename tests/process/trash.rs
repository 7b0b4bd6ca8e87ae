//! `per-node trash` beside the process that serves, and without one.

use std::fs;
use std::process::Output;
use std::sync::Arc;

use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::handle::Handle;
use per_node::domain::kept::{Kept, ServedTime};
use per_node::domain::time::Wall;
use per_node::ports::copies::Copies;
use per_node::ports::records::Records;
use serde_json::Value;
use tempfile::TempDir;

use super::host::{Driver, Host, eventually};

/// Memory has room, whatever the disk has: a nearly full one would empty the trash at the start.
const ROOMY: &str = "/dev/shm";

/// A node with a store in memory, with a kept copy of each of these, as a process left it that has ended.
async fn keep(names: &[&str]) -> (Host, TempDir) {
    let (host, store) = (Host::start().await, TempDir::new_in(ROOMY).expect("a directory"));
    keep_in(&store, names).await;
    (host, store)
}

async fn keep_in(at: &TempDir, names: &[&str]) {
    let store = Arc::new(StoreDirs::open(at.path()).expect("a store"));
    let (records, copies) =
        (SlotRecords::open(&store).expect("records"), LinuxCopies::new(store.clone(), 0o777));
    for (age, name) in names.iter().enumerate() {
        let handle = Handle::parse(name).expect("a handle");
        copies.ensure(&handle).await.expect("a copy");
        fs::write(at.path().join("copies").join(name).join("file"), name).expect("written");
        let (removed, since) = (Wall { unix_ms: 1_796_000_000_000 }, ServedTime { ms: age as u64 });
        let kept = Kept { removed, since, bytes: Some(4096) };
        let id = records.reserve_trash(&handle, Some(kept)).await.expect("an entry");
        copies.discard(&handle, id).await.expect("discarded");
    }
}

async fn serve(host: &Host, store: &TempDir, trash_for: Option<&str>) -> Driver {
    let mut command = host.serve();
    command.env("PER_NODE_STORE", store.path());
    command.envs(trash_for.map(|span| ("PER_NODE_TRASH_FOR", span)));
    let driver = host.spawn(command, "driver.log");
    host.is_served().await;
    driver
}

async fn trash(host: &Host, store: &TempDir, words: &[&str]) -> Output {
    let mut command = host.inside();
    command.args([env!("CARGO_BIN_EXE_per-node"), "trash"]).args(words).env_clear();
    command.env("PER_NODE_STORE", store.path()).output().await.expect("nsenter runs")
}

async fn listed(host: &Host, store: &TempDir) -> Vec<(String, String)> {
    let output = trash(host, store, &["ls", "-o", "json"]).await;
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["version"], 1);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    told["kept"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (text(&it["entry"]), text(&it["handle"])))
        .collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn c26_a_person_lists_restores_and_empties_kept_copies() {
    let (host, store) = keep(&["first", "second", "third"]).await;
    let before = listed(&host, &store).await;
    assert_eq!(
        before.iter().map(|(_, handle)| handle.as_str()).collect::<Vec<_>>(),
        ["first", "second", "third"]
    );
    let alone = trash(&host, &store, &["restore", "first"]).await;
    assert_eq!(alone.status.code(), Some(1));
    assert!(said(&alone).contains("no per-node serves the store"), "{}", said(&alone));
    let _driver = serve(&host, &store, Some("1h")).await;
    assert_eq!(listed(&host, &store).await, before, "a start keeps them");
    let restored = trash(&host, &store, &["restore", "first"]).await;
    assert!(restored.status.success(), "{}", said(&restored));
    assert_eq!(fs::read(store.path().join("copies/first/file")).expect("its file"), b"first");
    let again = trash(&host, &store, &["restore", "first"]).await;
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("per-node trash ls"), "{}", said(&again));
    let emptied = trash(&host, &store, &["empty", &before[1].0]).await;
    assert!(emptied.status.success(), "{}", said(&emptied));
    eventually(|| !store.path().join("trash").join(&before[1].0).exists()).await;
    assert_eq!(listed(&host, &store).await, before[2..]);
    assert!(trash(&host, &store, &["empty", "--all"]).await.status.success());
    eventually(|| fs::read_dir(store.path().join("trash")).expect("the trash").next().is_none()).await;
    assert_eq!(said(&trash(&host, &store, &["ls"]).await), "no copies are kept\n");
    assert!(store.path().join("copies/first/file").is_file());
}

#[tokio::test]
async fn c26_a_start_without_the_flag_empties_what_was_kept() {
    let (host, store) = keep(&["data"]).await;
    let _driver = serve(&host, &store, None).await;
    eventually(|| fs::read_dir(store.path().join("trash")).expect("the trash").next().is_none()).await;
    assert!(listed(&host, &store).await.is_empty());
}
