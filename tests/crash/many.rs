//! SIGKILL at a random instant among 32 publishes and unpublishes that are under way at once, again and again on one
//! node: the kubelet's next tries bring everything to where it was going, and nothing is left over.
//!
//! `PER_NODE_CRASH_ROUNDS` sets how often, `PER_NODE_CRASH_SEED` when and what; both are printed.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use tonic::Code;

use crate::Case;
use crate::node::{Node, runtime};

const CALLS: usize = 32;
const ROUNDS: u64 = 30;
/// The kill comes within this time after the calls were begun.
const KILL_WITHIN_US: u64 = 80_000;
/// Of the volumes one in so many is asked for by a rival afterwards, others in each round.
const RIVALS_ONE_IN: usize = 4;

pub fn cases() -> Vec<Case> {
    vec![("c12_c16_c40_kills_at_random_among_32_calls_leak_nothing_and_lose_nothing", rounds)]
}

/// A small generator: the same seed gives the same rounds.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |value| value.parse().expect("a number"))
}

/// One volume and who is to have it.
struct Volume {
    handle: String,
    /// The pod that holds it, as far as the kubelet was told.
    holder: Option<String>,
    /// Lines that pods have written.
    lines: Vec<String>,
}

fn rounds() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let seed = setting("PER_NODE_CRASH_SEED", u64::try_from(now % 1_000_000_000).unwrap_or_default());
    let count = setting("PER_NODE_CRASH_ROUNDS", ROUNDS);
    println!("PER_NODE_CRASH_SEED={seed} PER_NODE_CRASH_ROUNDS={count}");
    let mut chance = Chance(seed);
    let node = Node::standalone();
    let mut volumes: Vec<Volume> = (0..CALLS)
        .map(|number| Volume { handle: format!("v{number}"), holder: None, lines: Vec::new() })
        .collect();
    let mut cut_off = 0;
    for round in 0..count {
        cut_off += one_round(&node, &mut volumes, round, &mut chance);
    }
    println!("{count} kills, {cut_off} of {} calls cut off", count * CALLS as u64);
    let _driver = node.start();
    for volume in &volumes {
        if let Some(pod) = &volume.holder {
            node.unpublish(&volume.handle, pod).expect("unpublished");
        }
        let text = fs::read_to_string(node.copy(&volume.handle).join("lines")).unwrap_or_default();
        assert_eq!(text.lines().collect::<Vec<_>>(), volume.lines, "{}", volume.handle);
    }
    assert_eq!(node.mounts(), ["kubelet"]);
    assert_eq!((node.names("trash"), node.target_records()), (vec![], vec![]));
    let left: Vec<_> = targets(&node);
    assert!(left.is_empty(), "{left:?}");
}

/// Target directories that are there.
fn targets(node: &Node) -> Vec<String> {
    let pods = fs::read_dir(node.path("kubelet/pods")).expect("pods").map(|pod| pod.expect("a pod").path());
    let targets = pods.map(|pod| pod.join("volumes/kubernetes.io~csi/pv/mount"));
    targets.filter(|target| target.exists()).map(|target| target.display().to_string()).collect()
}

/// How many calls were cut off.
fn one_round(node: &Node, volumes: &mut [Volume], round: u64, chance: &mut Chance) -> u64 {
    let driver = node.start();
    let calls = join_all(volumes.iter().map(|volume| match &volume.holder {
        Some(pod) => in_time(runtime().spawn(node.unpublishing(&volume.handle, pod))),
        None => in_time(runtime().spawn(node.publishing(&volume.handle, &pod_of(volume, round)))),
    }));
    let instant = Duration::from_micros(chance.below(KILL_WITHIN_US));
    let killing = std::thread::spawn(move || {
        std::thread::sleep(instant);
        driver.kill();
    });
    let answers = runtime().block_on(calls);
    killing.join().expect("killed");
    let seen: Vec<usize> = volumes.iter().map(|volume| node.mounts_at(&who(volume, round))).collect();
    assert!(seen.iter().all(|&mounts| mounts <= 1), "seed and round {round}: {seen:?}");
    let _driver = node.start();
    let mut cut_off = 0;
    for (number, (volume, answer)) in volumes.iter_mut().zip(answers).enumerate() {
        let pod = who(volume, round);
        let mounts = node.mounts_at(&pod);
        if (number + round as usize).is_multiple_of(RIVALS_ONE_IN) {
            rival_gets_what_is_free(node, &volume.handle, mounts);
        }
        cut_off += u64::from(answer.is_err());
        if volume.holder.is_some() {
            assert!(answer.is_err() || mounts == 0, "an unpublish that was answered left its mount");
            node.unpublish(&volume.handle, &pod).expect("the kubelet's next try");
            assert_eq!(node.mounts_at(&pod), 0);
            volume.holder = None;
        } else {
            assert!(answer.is_err() || mounts == 1, "a publish that was answered lost its mount");
            node.publish(&volume.handle, &pod).expect("the kubelet's next try");
            assert_eq!(node.mounts_at(&pod), 1);
            append(node, &pod, &mut volume.lines);
            volume.holder = Some(pod);
        }
    }
    let held = volumes.iter().filter(|volume| volume.holder.is_some()).count();
    assert_eq!(node.mounts().len(), held + 1, "round {round}: {:?}", node.mounts());
    assert_eq!(node.target_records().len(), held, "round {round}");
    assert_eq!(node.names("trash"), [""; 0], "round {round}");
    cut_off
}

/// Another pod is let in where nothing is mounted, and only there.
fn rival_gets_what_is_free(node: &Node, handle: &str, mounts: usize) {
    match node.publish(handle, "rival") {
        Ok(()) => {
            assert_eq!(mounts, 0, "two pods on {handle}");
            node.unpublish(handle, "rival").expect("unpublished");
        }
        Err(status) => {
            assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
            assert_eq!(mounts, 1, "{handle} is held by nobody");
        }
    }
}

async fn in_time<T>(task: tokio::task::JoinHandle<T>) -> T {
    tokio::time::timeout(crate::node::PATIENCE, task)
        .await
        .expect("an answer, or a broken connection")
        .expect("no panic")
}

fn pod_of(volume: &Volume, round: u64) -> String {
    format!("{}-{}", volume.handle, round)
}

/// The pod whose call is under way.
fn who(volume: &Volume, round: u64) -> String {
    volume.holder.clone().unwrap_or_else(|| pod_of(volume, round))
}

/// What the pod writes.
fn append(node: &Node, pod: &str, lines: &mut Vec<String>) {
    use std::io::Write;
    let mut file =
        fs::File::options().create(true).append(true).open(node.target(pod).join("lines")).expect("its file");
    writeln!(file, "{pod}").expect("the pod can write");
    lines.push(pod.to_owned());
}
