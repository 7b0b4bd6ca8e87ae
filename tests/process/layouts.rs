//! Stores as earlier versions wrote them, from texts that stay in the tree: today's driver starts on each, keeps what it has to
//! keep and goes on with what was begun (C40). And a store that today's driver writes is one of them, so that no layout comes
//! without its text.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::domain::event_series::{Series, SeriesKey};
use per_node::domain::handle::Handle;
use per_node::domain::holds::{Makes, TargetRecord, TargetState};
use per_node::domain::kept::{Keeping, Kept, ServedTime};
use per_node::domain::pod::{PodName, PodReference, PodUid, Subject};
use per_node::domain::proof::{ClusterUid, History, Marker, Revision};
use per_node::domain::refusal::Reason;
use per_node::domain::time::Wall;
use per_node::domain::trash::CopyMark;
use per_node::ports::records::Records;
use serde_json::{Value, json};
use siphasher::sip::SipHasher13;
use tempfile::TempDir;

use super::host::{Host, eventually};

/// Memory has room: a nearly full store would empty the trash at the start.
const ROOMY: &str = "/dev/shm";

/// The kubelet's directory in the texts.
const KUBELET_DIR: &str = "/var/lib/kubelet";

const AT: Wall = Wall { unix_ms: 1_796_000_000_000 };

/// One store as text, a line for each thing: `dir PATH MODE`, `text PATH CONTENT`, `slots PATH BYTESxCOUNT`, and `@NUMBER RECORD` for
/// what is in a slot of the file before it.
struct Layout {
    name: String,
    text: String,
}

fn layouts() -> Vec<Layout> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/layouts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).expect("the texts").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: PathBuf| Layout {
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        text: fs::read_to_string(path).expect("a text"),
    };
    paths.into_iter().map(read).collect()
}

/// A file of slots, each one line that is filled up with blanks.
#[derive(Default)]
struct Slots {
    path: PathBuf,
    slot_bytes: usize,
}

impl Slots {
    /// Empty ones: `512x256` are 256 of 512 bytes.
    fn new(path: PathBuf, shape: &str) -> Self {
        let (slot_bytes, count) = shape.split_once('x').expect("BYTESxCOUNT");
        let slot_bytes: usize = slot_bytes.parse().expect("bytes");
        let slot = " ".repeat(slot_bytes - 1) + "\n";
        fs::write(&path, slot.repeat(count.parse().expect("a count"))).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        Self { path, slot_bytes }
    }

    fn put(&self, number: usize, record: &str) {
        let mut bytes = fs::read(&self.path).expect("the slots");
        let offset = number * self.slot_bytes;
        bytes[offset..offset + record.len()].copy_from_slice(record.as_bytes());
        fs::write(&self.path, bytes).expect("written");
    }
}

impl Layout {
    /// Makes the store. Where a node has its kubelet's directory elsewhere, records say so.
    fn build(&self, store: &Path, kubelet_dir: &str) {
        let mut slots = Slots::default();
        for line in self.text.lines().filter(|line| !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').expect("a word and more");
            if let Some(number) = word.strip_prefix('@') {
                slots.put(number.parse().expect("a number"), &moved(rest, kubelet_dir));
                continue;
            }
            let (name, value) = rest.split_once(' ').expect("a name and a value");
            let path = store.join(name);
            match word {
                "dir" => {
                    fs::create_dir_all(&path).expect("made");
                    let mode = u32::from_str_radix(value, 8).expect("a mode");
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
                }
                "text" => fs::write(&path, value).expect("written"),
                "slots" => slots = Slots::new(path, value),
                other => panic!("{other}: no such word"),
            }
        }
    }

    /// The files of copies and kept entries, with what is in them.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.lines().filter_map(|line| line.strip_prefix("text ")?.split_once(' '))
    }

    fn has(&self, name: &str) -> bool {
        self.text.contains(name)
    }
}

/// A record for another kubelet's directory: the same line where it is the same.
fn moved(record: &str, kubelet_dir: &str) -> String {
    if kubelet_dir == KUBELET_DIR || !record.contains(KUBELET_DIR) {
        return record.to_owned();
    }
    let json = record.splitn(3, ' ').nth(2).expect("a record").replace(KUBELET_DIR, kubelet_dir);
    let mut hasher = SipHasher13::new();
    hasher.write(json.as_bytes());
    format!("{:016x} {} {json}", hasher.finish(), json.len())
}

fn handle(name: &str) -> Handle {
    Handle::parse(name).expect("a handle")
}

/// The record of a target below the texts' own directory.
fn target(of: &str, pod: &str, uid: &str, state: TargetState, since: Option<Wall>) -> TargetRecord {
    let path = format!("{KUBELET_DIR}/pods/{uid}/volumes/kubernetes.io~csi/{of}/mount");
    TargetRecord {
        target: serde_json::from_value(json!(path)).expect("a path"),
        handle: handle(of),
        uid: PodUid::parse(uid),
        pod: PodName::parse("ci", pod),
        readonly: false,
        state,
        since,
    }
}

fn series(
    name: &str,
    subject: Subject,
    reason: Reason,
    message: &str,
    last: Wall,
    counts: (u32, u32),
) -> Series {
    let key = SeriesKey { subject, reason, message: message.to_owned() };
    let name = serde_json::from_value(json!(name)).expect("a name");
    Series { name, key, first: AT, last, count: counts.0, posted: counts.1 }
}

fn targets() -> [TargetRecord; 2] {
    let begun = TargetState::Attaching(Makes { copy: true, target: true });
    [
        target("warm", "build-0", "11111111-1111-4111-8111-111111111111", TargetState::Held, Some(AT)),
        target("half", "build-1", "22222222-2222-4222-8222-222222222222", begun, None),
    ]
}

fn all_series() -> [Series; 2] {
    let held = "volume warm is held on this node by ci/build-0: it mounts here once that pod is gone";
    let uid = PodUid::parse("33333333-3333-4333-8333-333333333333").expect("a UID");
    let pod = PodReference { name: PodName::parse("ci", "build-2").expect("a name"), uid };
    let early = "1 kept copy went early: the store is nearly full";
    let later = Wall { unix_ms: AT.unix_ms + 60_000 };
    [
        series("build-2.5f3a", Subject::Pod(pod), Reason::VolumeHeld, held, later, (3, 2)),
        series("node-1.77aa", Subject::Node("node-1".into()), Reason::TrashEmptied, early, AT, (1, 1)),
    ]
}

const KEPT: Kept = Kept { removed: AT, since: ServedTime { ms: 5000 }, bytes: Some(4096) };
const CONDEMNED: CopyMark = CopyMark { inode: 12, made_ns: Some(AT.unix_ms * 1_000_000) };
const HISTORY: History = History { highest: Revision(90_210), went_back: false };
const KEEPING: Keeping =
    Keeping { served: ServedTime { ms: 5000 }, trash_for: Some(Duration::from_secs(3 * 24 * 3600)) };

fn marker() -> Marker {
    let cluster_uid = ClusterUid("44444444-4444-4444-8444-444444444444".into());
    Marker { driver_name: "per-node.liken.sh".into(), cluster_uid }
}

/// What a store is to who reads it: for each file of records its length, the length of a slot, and what is in them. The numbers
/// of trash entries are a clock's.
type Signature = BTreeMap<String, (u64, usize, Vec<String>)>;

fn signature(store: &Path) -> Signature {
    let mut files = Signature::new();
    for entry in fs::read_dir(store.join("holds")).expect("the records") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        let records = text.split_inclusive('\n').filter_map(|slot| {
            let mut record: Value = serde_json::from_str(slot.trim().splitn(3, ' ').nth(2)?).expect("JSON");
            if let Some(id) = record.get_mut("id") {
                *id = json!(0);
            }
            Some(record.to_string())
        });
        let mut records: Vec<String> = records.collect();
        records.sort();
        let slot = text.split_inclusive('\n').map(str::len).max().unwrap_or_default();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        files.insert(name, (text.len() as u64, slot, records));
    }
    files
}

/// A store with one record of each kind, written by today's adapter.
async fn written_today(store: &Path) {
    let directories = StoreDirs::open(store).expect("a store");
    let records = SlotRecords::open(&directories).expect("records");
    for target in targets() {
        records.put_target(&target).await.expect("a target");
    }
    records.reserve_trash(&handle("going"), None).await.expect("an entry");
    records.reserve_trash(&handle("kept"), Some(KEPT)).await.expect("a kept entry");
    records.condemn(&handle("other"), CONDEMNED).await.expect("a condemned copy");
    for series in all_series() {
        records.put_series(&series).await.expect("a series");
    }
    records.put_history(HISTORY, true).await.expect("the history");
    records.put_marker(&marker()).await.expect("the marker");
    records.put_keeping(KEEPING).await.expect("how copies are kept");
}

#[tokio::test]
async fn c40_the_layout_that_is_written_has_its_text_in_the_tree() {
    let today = TempDir::new_in(ROOMY).expect("a directory");
    written_today(today.path()).await;
    let today = signature(today.path());
    let known = layouts().into_iter().any(|layout| {
        let store = TempDir::new_in(ROOMY).expect("a directory");
        layout.build(store.path(), KUBELET_DIR);
        signature(store.path()) == today
    });
    assert!(
        known,
        "no text in tests/process/layouts has this layout: add one, and keep the others\n{today:#?}"
    );
}

/// Every record of every text is read as what it says.
#[tokio::test]
async fn c40_the_records_of_each_layout_are_read() {
    for layout in layouts() {
        let store = TempDir::new_in(ROOMY).expect("a directory");
        layout.build(store.path(), KUBELET_DIR);
        let directories = StoreDirs::open(store.path()).expect("a store");
        let records = SlotRecords::open(&directories).expect("records");
        let name = &layout.name;
        let mut read = records.targets();
        read.sort_by(|one, other| other.handle.cmp(&one.handle));
        let mut expected = targets();
        if !layout.has("\"since\":1796000000000}") {
            expected[0].since = None;
        }
        assert_eq!(read, expected, "{name}");
        let going: Vec<_> = records.trash_records().into_iter().map(|(_, handle)| handle).collect();
        assert!(going.contains(&handle("going")), "{name}");
        let kept: Vec<_> = records.kept_trash().into_iter().map(|copy| (copy.handle, copy.kept)).collect();
        assert_eq!(
            kept,
            if layout.has("\"kept\"") { vec![(handle("kept"), KEPT)] } else { vec![] },
            "{name}"
        );
        let condemned = if layout.has("condemned\":") { vec![(handle("other"), CONDEMNED)] } else { vec![] };
        assert_eq!(records.condemned(), condemned, "{name}");
        let mut read = records.series();
        read.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!(read, all_series()[..if layout.has("node-1") { 2 } else { 1 }], "{name}");
        assert_eq!(records.history(), layout.has("holds/history").then_some(HISTORY), "{name}");
        assert_eq!(records.marker(), Some(marker()), "{name}");
        assert_eq!(records.keeping(), layout.has("holds/keeping").then_some(KEEPING), "{name}");
    }
}

/// What a start does with it: the copies are as they were, what was on its way out goes, what is kept stays, the publish that was
/// never answered is undone, and pods can have the copies.
#[tokio::test]
async fn c40_a_driver_starts_on_each_layout_and_loses_nothing() {
    for layout in layouts() {
        let name = &layout.name;
        let (host, store) = (Host::start().await, TempDir::new_in(ROOMY).expect("a directory"));
        let kubelet_dir = host.path("kubelet");
        layout.build(store.path(), kubelet_dir.to_str().expect("a path of text"));
        let mut command = host.serve();
        command.env("PER_NODE_STORE", store.path()).env("PER_NODE_TRASH_FOR", "3d");
        let mut driver = host.spawn(command, "driver.log");
        host.is_served().await;

        eventually(|| !store.path().join("trash/t1796000000001").exists()).await;
        assert!(!store.path().join("copies/half").exists(), "{name}: what a publish began is undone");
        for (file, text) in layout.texts().filter(|(file, _)| !file.contains("t1796000000001")) {
            let there = fs::read_to_string(store.path().join(file)).expect("a file");
            assert_eq!(there, text, "{name}: {file}");
        }
        host.publish("warm", "pod-1").await.expect("published");
        let seen = host.seen(&host.target("pod-1")).join("data");
        assert_eq!(fs::read_to_string(seen).expect("its file"), "what the pod wrote", "{name}");
        host.unpublish("warm", "pod-1").await.expect("unpublished");
        driver.signal(Signal::SIGTERM);
        assert!(driver.ends().await.success(), "{name}");

        let directories = StoreDirs::open(store.path()).expect("a store");
        let records = SlotRecords::open(&directories).expect("records");
        assert_eq!(records.marker(), Some(marker()), "{name}");
        assert_eq!(records.history(), layout.has("holds/history").then_some(HISTORY), "{name}");
        assert!(records.targets().is_empty(), "{name}: no mount, no hold");
        assert_eq!(records.kept_trash().len(), usize::from(layout.has("\"kept\"")), "{name}");
    }
}
