//! The guides of docs/, done as a reader does them: the YAML blocks of each page are put into the files that it names, its
//! commands are run in order, and what its pods were to write is looked for on the nodes' disks.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::api::api;
use crate::cluster::{cluster, repository};
use crate::markdown::blocks;
use crate::room::Room;
use crate::wait::{KUBECTL_PATIENCE, wait_until};

/// The mark of a block that is run here.
const MARK: &str = "run by tests/cluster/page/guides.rs";

/// How long the pages tell kubectl to wait.
const READERS_PATIENCE: &str = "--timeout=2m";

/// The pages whose commands are run.
const PAGES: [&str; 6] = [
    "docs/guides/quick-start.md",
    "docs/guides/first-volume.md",
    "docs/guides/caches.md",
    "docs/guides/stateful-sets.md",
    "docs/guides/databases.md",
    "docs/guides/moving-data.md",
];

/// Runs commands in a directory, as a person who has `kubectl per-node` on the PATH. Gives back what they printed.
fn shell(directory: &Path, commands: &str) -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_kubectl-per_node")).parent().expect("a directory");
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", commands])
        .current_dir(directory)
        .env("KUBECONFIG", cluster().kubeconfig())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{commands}\n{said}\n{complaints}", output.status);
    said
}

/// The handles of the volumes in a file of objects.
fn handles(yaml: &str) -> Vec<String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(yaml).expect("objects");
    let handles = objects.iter().filter_map(|object| object["spec"]["csi"]["volumeHandle"].as_str());
    handles.map(str::to_owned).collect()
}

/// Whether a pod has left something in this volume, on whichever node it ran.
fn is_written(handle: &str) -> bool {
    let mut copies = cluster().nodes().into_iter().map(|node| node.copy(handle));
    copies.any(|copy| std::fs::read_dir(copy).is_ok_and(|mut entries| entries.next().is_some()))
}

/// One page from its first block to its last, and then everything of it deleted.
fn follow(page: &str) {
    let _room = Room::of(page);
    let directory = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(repository().join("deploy"), directory.path().join("deploy")).expect("a link");
    let text = std::fs::read_to_string(repository().join(page)).expect("the page");
    let mut volumes = BTreeSet::new();
    let mut run = 0;
    for block in blocks(&text) {
        if let Some(file) = block.marked("file:") {
            volumes.extend(handles(&block.text));
            std::fs::write(directory.path().join(file), &block.text).expect("a file");
        } else if block.mark.as_deref() == Some(MARK) {
            // A reader on a slow machine waits once more; this one waits longer.
            let commands = block.text.replace(READERS_PATIENCE, KUBECTL_PATIENCE);
            println!("{page}:{}\n{}", block.line, shell(directory.path(), &commands));
            run += 1;
        }
    }
    assert!(run > 0, "{page} has nothing marked `{MARK}`");
    for handle in &volumes {
        wait_until(&format!("{page}: something in {handle}"), || is_written(handle));
    }
    if !volumes.is_empty() {
        shell(directory.path(), &format!("cat ./*.yaml | kubectl delete {KUBECTL_PATIENCE} -f -"));
    }
    for handle in &volumes {
        for node in cluster().nodes() {
            wait_until(&format!("{page}: {handle} to go from {}", node.name), || !node.copy(handle).exists());
        }
    }
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c01_who_follows_the_guides_has_pods_that_write() {
    let began = std::time::Instant::now();
    // Each page has namespaces of its own.
    std::thread::scope(|scope| {
        let readers = PAGES.map(|page| (page, scope.spawn(move || follow(page))));
        for (page, reader) in readers {
            if let Err(panic) = reader.join() {
                println!("{}", cluster().kubectl(&["get", "pods,pv,pvc,events", "--all-namespaces"]));
                println!("{page} failed");
                std::panic::resume_unwind(panic);
            }
        }
    });
    println!("all pages after {} s", began.elapsed().as_secs());
    // The quick start deleted what it made, by its own last command.
    assert_eq!(api().get("/api/v1/persistentvolumes/map-tiles"), None);
}
