//! The kubelet of the node, as `csi-facts` of Kubernetes 1.34 to 1.37 have it: what it writes, when it calls,
//! and what it does with an answer by the class of its code. It never looks into the driver.

use std::collections::BTreeMap;
use std::path::PathBuf;

use per_node::adapters::memory::Node;
use per_node::domain::handle::Handle;
use per_node::domain::mount_table::TargetView;
use per_node::domain::pod::PodInfo;
use per_node::domain::refusal::{PublishError, Refusal};
use per_node::domain::volume_request::{AccessType, PublishRequest, UnpublishRequest, VolumeCapability};

use crate::plugin::KUBELET_DIR;

/// What the kubelet believes of a pod's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeState {
    NotMounted,
    Uncertain,
    Mounted,
}

/// A pod of this node with its one volume.
#[derive(Debug, Clone)]
pub struct Pod {
    pub uid: String,
    pub handle: Handle,
    pub volume: String,
    pub readonly: bool,
    /// It is to run.
    pub wanted: bool,
    /// Its container runs.
    pub running: bool,
    pub state: VolumeState,
    /// It was published here, and no unpublish or clean-up has begun since.
    pub published: bool,
    /// The kubelet knows the volume only from `vol_data.json`.
    pub reconstructed: bool,
    /// The call that the kubelet waits for.
    pub call: Option<u64>,
}

/// A call to the driver that has not been answered.
#[derive(Debug, Clone)]
pub struct Call {
    pub pod: usize,
    /// The pod as it was then.
    pub of: Pod,
    pub is_publish: bool,
    pub target_was_there: bool,
    pub copy_was_there: bool,
    /// Somebody else removed the target since.
    pub was_disturbed: bool,
}

/// What became of the pod's volume by an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Started,
    Forgotten,
    Gone,
    Nothing,
}

#[derive(Debug, Default)]
pub struct Kubelet {
    pub pods: BTreeMap<usize, Pod>,
    pub calls: BTreeMap<u64, Call>,
    last_pod: usize,
    last_call: u64,
}

/// Whether the kubelet takes the code of this answer as final (section 6 of the contract).
pub fn is_final(error: &PublishError) -> bool {
    match error {
        PublishError::Refused { refusal: Refusal::Handle(_) | Refusal::ReadonlyDiffers { .. }, .. } => true,
        PublishError::Refused {
            refusal: Refusal::Target(_) | Refusal::Request(_) | Refusal::Held { .. } | Refusal::Failed(_),
            target_was_there,
        } => !target_was_there,
        PublishError::OutcomeUnknown { .. } => false,
    }
}

impl Pod {
    fn directory(&self) -> PathBuf {
        let below = format!("pods/{}/volumes/kubernetes.io~csi/{}", self.uid, self.volume);
        PathBuf::from(KUBELET_DIR).join(below)
    }

    pub fn target(&self) -> PathBuf {
        self.directory().join("mount")
    }

    pub fn data(&self) -> PathBuf {
        self.directory().join("vol_data.json")
    }

    pub fn subpath(&self) -> PathBuf {
        let below = format!("pods/{}/volume-subpaths/{}/main/0", self.uid, self.volume);
        PathBuf::from(KUBELET_DIR).join(below)
    }

    pub fn publish_request(&self) -> PublishRequest {
        let access_type = AccessType::Mount { flags: Vec::new(), volume_mount_group: String::new() };
        PublishRequest {
            volume_id: self.handle.as_str().to_owned(),
            target_path: self.target().display().to_string(),
            capability: Some(VolumeCapability { access_type: Some(access_type), access_mode: Some(5) }),
            readonly: self.readonly,
            pod: PodInfo {
                uid: Some(self.uid.clone()),
                namespace: Some("simulated".to_owned()),
                name: Some(self.uid.clone()),
            },
        }
    }

    pub fn unpublish_request(&self) -> UnpublishRequest {
        UnpublishRequest {
            volume_id: self.handle.as_str().to_owned(),
            target_path: self.target().display().to_string(),
        }
    }

    /// What the kubelet does after a final error, and after an unpublish that was answered OK.
    pub fn clean_up(&self, node: &Node) {
        if matches!(node.view(self.target()), TargetView::Directory { .. }) {
            node.remove(self.target());
        }
        node.remove(self.data());
        node.remove(self.directory());
    }
}

impl Kubelet {
    pub fn add_pod(&mut self, handle: &Handle, volume: &str, readonly: bool) -> usize {
        self.last_pod += 1;
        let pod = Pod {
            uid: format!("pod-{}", self.last_pod),
            handle: handle.clone(),
            volume: volume.to_owned(),
            readonly,
            wanted: true,
            running: false,
            state: VolumeState::NotMounted,
            published: false,
            reconstructed: false,
            call: None,
        };
        self.pods.insert(self.last_pod, pod);
        self.last_pod
    }

    /// One mount at a time for each volume; an unmount waits for it.
    pub fn is_mounting(&self, handle: &Handle) -> bool {
        self.calls.values().any(|call| call.is_publish && &call.of.handle == handle)
    }

    /// Notes a call; the kubelet waits for its answer unless it is a duplicate.
    pub fn note_call(&mut self, node: &Node, number: usize, is_publish: bool, is_waited_for: bool) -> u64 {
        self.last_call += 1;
        let Some(pod) = self.pods.get_mut(&number) else { return self.last_call };
        let call = Call {
            pod: number,
            of: pod.clone(),
            is_publish,
            target_was_there: node.exists(pod.target()),
            copy_was_there: node.copy(&pod.handle).is_some(),
            was_disturbed: false,
        };
        self.calls.insert(self.last_call, call);
        pod.published &= is_publish;
        if is_waited_for {
            pod.call = Some(self.last_call);
        }
        self.last_call
    }

    /// The kubelet waits no longer, or the connection broke: the outcome is unknown to it.
    pub fn give_up(&mut self, number: usize) {
        if let Some(pod) = self.pods.get_mut(&number)
            && pod.call.take().is_some()
        {
            pod.state = VolumeState::Uncertain;
        }
    }

    /// The process that served the calls is gone.
    pub fn lose_calls(&mut self) {
        let waiting: Vec<usize> = self.pods.keys().copied().collect();
        waiting.into_iter().for_each(|number| self.give_up(number));
        self.calls.clear();
    }

    /// An answer to a publish came.
    pub fn take_published(
        &mut self,
        node: &Node,
        number: u64,
        answer: &Result<(), PublishError>,
        old: bool,
    ) -> Taken {
        let Some(pod) = self.waiting(number) else { return Taken::Nothing };
        match answer {
            Ok(()) => {
                pod.state = VolumeState::Mounted;
                pod.published = true;
                pod.reconstructed = false;
                let starts = pod.wanted && !pod.running;
                pod.running |= pod.wanted;
                if starts { Taken::Started } else { Taken::Nothing }
            }
            Err(error) if is_final(error) && (old || !pod.reconstructed) => {
                pod.state = VolumeState::NotMounted;
                pod.published = false;
                pod.clean_up(node);
                Taken::Forgotten
            }
            Err(_) => {
                pod.state = VolumeState::Uncertain;
                Taken::Nothing
            }
        }
    }

    /// An answer to an unpublish came.
    pub fn take_unpublished(&mut self, node: &Node, number: u64, is_ok: bool) -> Taken {
        let Some(pod) = self.waiting(number) else { return Taken::Nothing };
        if !is_ok {
            pod.state = VolumeState::Uncertain;
            return Taken::Nothing;
        }
        pod.state = VolumeState::NotMounted;
        pod.clean_up(node);
        Taken::Gone
    }

    fn waiting(&mut self, number: u64) -> Option<&mut Pod> {
        let call = self.calls.remove(&number)?;
        let pod = self.pods.get_mut(&call.pod)?;
        if pod.call != Some(number) {
            return None;
        }
        pod.call = None;
        Some(pod)
    }

    /// Pods that have ended and have no volume any more are no more.
    pub fn bury(&mut self) {
        self.pods.retain(|_, pod| pod.wanted || pod.state != VolumeState::NotMounted || pod.call.is_some());
    }

    /// The kubelet starts anew: it knows volumes from `vol_data.json` alone.
    pub fn restart(&mut self, node: &Node) {
        for pod in self.pods.values_mut() {
            pod.call = None;
            pod.reconstructed = node.exists(pod.data());
            pod.state = if pod.reconstructed { VolumeState::Uncertain } else { VolumeState::NotMounted };
        }
    }
}
