//! A pod that writes checksummed blocks all the while, and the check that no byte of them was lost.
//!
//! Each block is a file named after its number and its SHA-256, put in place by a rename, so that a whole file is a block that
//! was acknowledged. A block that is missing, cut or changed shows, and so does a writer that was stopped or replaced.

use serde_json::Value;

use super::case::Case;
use super::manifest;
use super::node::Node;
use super::wait::wait_until;

/// One block every fifth of a second; a pod that starts again goes on after the last one.
const SCRIPT: &str = "\
mkdir -p /data/blocks
n=$(ls /data/blocks | wc -l)
while true; do
  head -c 4096 /dev/urandom > /data/next
  mv /data/next /data/blocks/$n.$(sha256sum < /data/next | cut -c 1-64)
  n=$((n + 1))
  sleep 0.2
done";

/// A writer on one node, with a volume of its own.
pub struct Writer<'a> {
    case: &'a Case,
    node: &'a Node,
    /// Its pod.
    pub pod: String,
    handle: String,
    uid: String,
}

impl<'a> Writer<'a> {
    /// Starts one and waits for its first blocks.
    pub fn start(case: &'a Case, node: &'a Node) -> Self {
        Self::start_of(manifest::DRIVER, case, node)
    }

    /// The same with a volume of a driver of another name.
    pub fn start_of(driver: &str, case: &'a Case, node: &'a Node) -> Self {
        let handle = case.bound_volume_of(driver, &format!("blocks-{}", node.number()), "ReadWriteMany");
        let pod = format!("writer-{}", node.number());
        let mut manifest = manifest::pod(&pod, Some(node.name), &handle, SCRIPT);
        manifest["spec"]["restartPolicy"] = "Always".into();
        case.apply(&manifest);
        let uid = case.wait_running(&pod);
        let writer = Self { case, node, pod, handle, uid };
        writer.writes_on();
        writer
    }

    /// The volume it writes to, which is also its claim and its handle.
    pub fn volume(&self) -> &str {
        &self.handle
    }

    /// How many blocks there are.
    fn blocks(&self) -> usize {
        std::fs::read_dir(self.node.copy(&self.handle).join("blocks")).map_or(0, Iterator::count)
    }

    /// Waits until blocks are added.
    pub fn writes_on(&self) {
        let before = self.blocks();
        wait_until("the writer to write on", || self.blocks() > before + 2);
    }

    /// Every block is there and whole.
    pub fn lost_nothing(&self) {
        let blocks = self.node.copy(&self.handle).join("blocks");
        // The writer goes on meanwhile, and a list of a directory may miss what is put there while it is made: all that were
        // there before have to be in it.
        let there = self.blocks();
        let sums = sha256_of_all(&blocks);
        for number in 0..there {
            let start = format!("{number}.");
            let found: Vec<_> = sums.iter().filter(|(name, _)| name.starts_with(&start)).collect();
            let [(name, sum)] = found[..] else { panic!("block {number} of {there} is missing: {found:?}") };
            assert_eq!(&name[start.len()..], sum, "block {number} has changed");
        }
    }

    /// It is still the first pod, its container never started again, and it writes: it noticed nothing.
    pub fn noticed_nothing(&self) {
        self.writes_on();
        let pod = self.case.pod(&self.pod).expect("the writer");
        assert_eq!(pod["metadata"]["uid"], self.uid.as_str());
        assert_eq!(restarts(&pod), 0, "the writer was started again");
        assert_eq!(self.node.mounts_of(&self.handle).len(), 1, "C11: one mount");
        self.lost_nothing();
    }

    /// It is still the same pod and writes again after its node was away.
    pub fn came_back(&self) {
        self.case.wait_running(&self.pod);
        self.writes_on();
        assert_eq!(self.case.pod(&self.pod).expect("the writer")["metadata"]["uid"], self.uid.as_str());
        assert_eq!(self.node.mounts_of(&self.handle).len(), 1, "C11: one mount");
        self.lost_nothing();
    }
}

/// How often a pod's first container was started again.
fn restarts(pod: &Value) -> u64 {
    pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or_default()
}

/// The names and sums of a directory's files, by the tool, so that the cases need no crate for it.
fn sha256_of_all(directory: &std::path::Path) -> Vec<(String, String)> {
    let sums = "find . -type f -print0 | xargs -0 -r sha256sum";
    let output = std::process::Command::new("sh")
        .args(["-c", sums])
        .current_dir(directory)
        .output()
        .expect("sha256sum");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines
        .lines()
        .filter_map(|line| line.split_once("  ./").map(|(sum, name)| (name.into(), sum.into())))
        .collect()
}
