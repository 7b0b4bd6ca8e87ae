//! The play: two nodes, an API server, and the acts that everything in it is made of. Each act is done over a
//! node's socket, printed, and held to what was promised.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tonic::Code;

use super::describe::{Described, describe};
use super::kubelet::{Answer, Pod, Volume};
use super::node::{Cluster, DRIVER, Node};
use super::report::{INDENT, Report};
use super::tree::tree;
use super::wait::until;
use crate::adapters::memory::StoredEvent;
use crate::domain::handle::Handle;
use crate::domain::pod::{PodName, PodReference, PodUid};
use crate::ports::clock::Clock;

/// The namespace that everybody is in.
pub const NAMESPACE: &str = "example";
/// The name of the file that pods write.
pub const NOTES: &str = "notes.txt";

/// Two nodes and a report.
pub struct Play {
    pub cluster: Cluster,
    pub one: Node,
    pub two: Node,
    pub report: Report,
    pods: u32,
    /// The latest message of an answer.
    said: Option<String>,
}

/// Which node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    One,
    Two,
}

impl Play {
    /// Starts both nodes below `base`.
    pub async fn begin(base: &Path, cluster: Cluster, report: Report) -> anyhow::Result<Play> {
        let one = Node::start("node-one", base, &cluster).await?;
        let two = Node::start("node-two", base, &cluster).await?;
        Ok(Play { cluster, one, two, report, pods: 0, said: None })
    }

    /// Ends both services.
    pub async fn end(self) -> anyhow::Result<()> {
        self.cluster.shutdown.cancel();
        self.one.ended().await?;
        self.two.ended().await
    }

    pub fn node(&self, on: On) -> &Node {
        match on {
            On::One => &self.one,
            On::Two => &self.two,
        }
    }

    /// A pod is created: a new UID, whoever had the name before.
    pub fn pod(&mut self, name: &'static str) -> Pod {
        self.pods += 1;
        let uid = format!("0f1e2d3c-4b5a-4697-8877-{:012}", self.pods);
        Pod { namespace: NAMESPACE, name, uid }
    }

    /// A person creates a PersistentVolume, and the API server tells both nodes.
    pub fn create_volume(&self, volume: &Volume) -> anyhow::Result<()> {
        let handle = Handle::parse(volume.handle).context("the volume's handle")?;
        self.cluster.api.create_volume(volume.name, DRIVER, &handle);
        Ok(())
    }

    /// The kubelet mounts the volume for the pod; the driver is to answer `expect`. A final refusal leaves
    /// nothing behind (C16).
    pub async fn mount(&mut self, on: On, pod: &Pod, volume: &Volume, expect: Code) -> io::Result<Answer> {
        self.mount_as(on, pod, volume, false, expect).await
    }

    pub async fn mount_as(
        &mut self,
        on: On,
        pod: &Pod,
        volume: &Volume,
        readonly: bool,
        expect: Code,
    ) -> io::Result<Answer> {
        let answer = self.node(on).kubelet.mount(pod, volume, readonly).await?;
        let what = if readonly { "mounts, read-only," } else { "mounts" };
        self.tell(on, pod, &format!("{what} {}", short(volume.handle)), &answer);
        self.hold_to(&answer, expect, "mount");
        if expect != Code::Ok {
            self.report.promise(!answer.target_is_there, "a refusal leaves nothing behind");
        }
        Ok(answer)
    }

    /// The pod ends, and the kubelet unmounts its volume.
    pub async fn unmount(&mut self, on: On, pod: &Pod, volume: &Volume) -> io::Result<()> {
        let answer = self.node(on).kubelet.unmount(pod, volume).await?;
        self.tell(on, pod, &format!("ends; unmounts {}", short(volume.handle)), &answer);
        self.hold_to(&answer, Code::Ok, "unmount");
        self.report.promise(!answer.target_is_there, "the target is gone after the unmount");
        Ok(())
    }

    fn tell(&mut self, on: On, pod: &Pod, what: &str, answer: &Answer) {
        let node = self.node(on).name;
        self.report.act(node, &who(pod), what, answer.code_name());
        let is_news = self.said.replace(answer.message.clone()).as_ref() != Some(&answer.message);
        match answer.message.as_str() {
            "" => {}
            message if is_news => self.report.saying(message),
            _ => self.report.saying("in the same words"),
        }
    }

    fn hold_to(&mut self, answer: &Answer, expect: Code, call: &str) {
        let expected = Answer { code: expect, message: String::new(), target_is_there: false };
        let promise = format!("the {call} is answered {}", expected.code_name());
        self.report.promise(answer.code == expect, &promise);
    }

    /// The pod writes a line through its mount.
    pub fn write(&mut self, on: On, pod: &Pod, volume: &Volume, line: &str) -> io::Result<()> {
        use std::io::Write;
        let path = self.node(on).kubelet.target(pod, volume).join(NOTES);
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{line}")?;
        let node = self.node(on).name;
        self.report.act(node, &who(pod), &format!("writes {NOTES}"), &format!("\"{line}\""));
        Ok(())
    }

    /// The pod reads through its mount what is to be there; an empty text is no file at all.
    pub fn read(&mut self, on: On, pod: &Pod, volume: &Volume, expect: &str) -> io::Result<()> {
        let path = self.node(on).kubelet.target(pod, volume).join(NOTES);
        let found = match std::fs::read_to_string(path) {
            Ok(text) => text.lines().collect::<Vec<_>>().join(" / "),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let node = self.node(on).name;
        let said =
            if found.is_empty() { "no file: the copy is empty".to_owned() } else { format!("\"{found}\"") };
        self.report.act(node, &who(pod), &format!("reads {NOTES}"), &said);
        self.report.promise(found == expect, &format!("the pod reads {expect:?}"));
        Ok(())
    }

    /// What lies on both nodes' disks.
    pub fn show_copies(&mut self) {
        for on in [On::One, On::Two] {
            let node = self.node(on);
            let (label, lines) = (format!("{} copies/", node.name), tree(&node.copies()));
            self.report.block(&label, &lines);
        }
    }

    /// What the driver's sweep did with a copy, and that it did so.
    pub fn swept(&mut self, on: On, what: &str, kept: bool) {
        let node = self.node(on).name;
        if kept {
            self.report.act(node, "the driver", "sweeps", what);
        }
        self.report.promise(kept, what);
    }

    /// Time passes on the clock of the play, and for nobody else.
    pub fn step_clock(&mut self, seconds: u64) {
        self.cluster.clock.advance(Duration::from_secs(seconds));
    }

    /// What `kubectl describe pod` shows once the event of `count` refusals is there.
    pub async fn describe(&mut self, pod: &Pod, reason: &str, count: u32) -> anyhow::Result<()> {
        let name = PodName::parse(pod.namespace, pod.name).context("the pod's name")?;
        let reference = PodReference { name, uid: PodUid::parse(&pod.uid).context("the pod's UID")? };
        let api = self.cluster.api.clone();
        let is_posted = |event: &StoredEvent| event.reason.as_str() == reason && event.count == count;
        let posted = until(async || api.events_of(&reference).iter().any(is_posted)).await;
        let now = self.cluster.clock.wall();
        let events = api.events_of(&reference);
        let described: Vec<Described> = events
            .iter()
            .map(|event| Described {
                reason: event.reason.as_str().to_owned(),
                count: event.count,
                since_first: now.since(event.first),
                since_last: now.since(event.last),
                from: DRIVER.to_owned(),
                message: event.message.clone(),
            })
            .collect();
        self.report.note(&format!("kubectl describe pod {} --namespace {}", pod.name, pod.namespace));
        self.report.lines(&describe(&described, INDENT));
        let promise = format!("one {reason} event counts {count}");
        self.report.promise(posted && events.len() == 1, &promise);
        Ok(())
    }
}

fn who(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// A handle that is too long for its column.
fn short(handle: &str) -> String {
    const SHOWN: usize = 24;
    if handle.len() <= SHOWN {
        return handle.to_owned();
    }
    let start: String = handle.chars().take(SHOWN - 1).collect();
    format!("{start}…")
}
