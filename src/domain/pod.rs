//! Who holds a copy: a pod is its UID, and where nobody knows it, its target path (C13).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::target::{KubeletDir, TargetPath};

/// The longest UID, namespace or name that is believed; Kubernetes' own are shorter.
const POD_FIELD_LENGTH_MAX: usize = 253;

/// A pod's UID. Static pods have hashes for one, so it is any short text without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodUid(String);

/// A pod's namespace and name, for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

/// Everything an event needs to reach a pod: `kubectl describe pod` asks by name, namespace and UID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodReference {
    #[serde(flatten)]
    pub name: PodName,
    pub uid: PodUid,
}

/// Who an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Pod(PodReference),
    /// The node by its name, which stands for its UID too: so the kubelet writes such events, and
    /// `kubectl describe node` finds them.
    Node(String),
}

/// The pod information that came with a request (`csi.storage.k8s.io/pod.*`), as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodInfo {
    pub uid: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

/// The pod of one target: what is known of it, and the target that stands in where nothing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub uid: Option<PodUid>,
    pub name: Option<PodName>,
    pub target: TargetPath,
}

impl PodUid {
    /// `None` where the text is empty, too long or has control characters.
    pub fn parse(raw: &str) -> Option<PodUid> {
        believable(raw).then(|| PodUid(raw.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PodName {
    /// `None` unless both parts are believable.
    pub fn parse(namespace: &str, name: &str) -> Option<PodName> {
        (believable(namespace) && believable(name))
            .then(|| PodName { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl Subject {
    /// The namespace that its events live in; a node has none, and the API server wants this one then.
    pub fn namespace(&self) -> &str {
        match self {
            Subject::Pod(pod) => &pod.name.namespace,
            Subject::Node(_) => "default",
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Subject::Pod(pod) => &pod.name.name,
            Subject::Node(name) => name,
        }
    }

    pub fn uid(&self) -> &str {
        match self {
            Subject::Pod(pod) => pod.uid.as_str(),
            Subject::Node(name) => name,
        }
    }
}

impl From<PodReference> for Subject {
    fn from(pod: PodReference) -> Subject {
        Subject::Pod(pod)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Pod(pod) => write!(f, "pod {}", pod.name),
            Subject::Node(name) => write!(f, "node {name}"),
        }
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Pod {
    /// The pod of a request: its own UID, else the one in the target path, else the target path itself.
    pub fn of_request(info: &PodInfo, target: &TargetPath, kubelet_dir: &KubeletDir) -> Pod {
        let told = info.uid.as_deref().and_then(PodUid::parse);
        Pod {
            uid: told.or_else(|| target.pod_uid(kubelet_dir)),
            name: info.pod_name(),
            target: target.clone(),
        }
    }

    /// Whether two targets are one pod's. Where either UID is unknown only the same target counts: two
    /// unknown pods at different targets are never the same.
    pub fn is_same_as(&self, other: &Pod) -> bool {
        match (&self.uid, &other.uid) {
            (Some(own), Some(others)) => own == others,
            (None, _) | (_, None) => self.target == other.target,
        }
    }

    /// Where to post an event, if the request named a pod.
    pub fn reference(&self) -> Option<PodReference> {
        Some(PodReference { name: self.name.clone()?, uid: self.uid.clone()? })
    }
}

/// The holder as C12 wants it named: namespace and name, else the UID, else the path of the mount.
impl fmt::Display for Pod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.uid) {
            (Some(name), _) => write!(f, "pod {name}"),
            (None, Some(uid)) => write!(f, "the pod with UID {}", uid.as_str()),
            (None, None) => write!(f, "the mount at {}", self.target.as_path().display()),
        }
    }
}

impl PodInfo {
    fn pod_name(&self) -> Option<PodName> {
        PodName::parse(self.namespace.as_deref()?, self.name.as_deref()?)
    }

    /// Where to post an event about a request whose target path cannot be used.
    pub fn reference(&self) -> Option<PodReference> {
        Some(PodReference { name: self.pod_name()?, uid: PodUid::parse(self.uid.as_deref()?)? })
    }
}

fn believable(raw: &str) -> bool {
    !raw.is_empty() && raw.len() <= POD_FIELD_LENGTH_MAX && !raw.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: Option<&str>, target: &str) -> Pod {
        Pod {
            uid: uid.and_then(PodUid::parse),
            name: None,
            target: TargetPath::from_mount_point(target.into()),
        }
    }

    #[test]
    fn c30_a_pod_has_a_name_where_both_parts_are_believable() {
        assert_eq!(PodName::parse("ns", "web-0").map(|name| name.to_string()).as_deref(), Some("ns/web-0"));
        assert_eq!((PodName::parse("", "web-0"), PodName::parse("ns", "")), (None, None));
    }

    #[test]
    fn c30_an_event_is_about_a_pod_in_its_namespace_or_about_a_node() {
        let told = |subject: &Subject| {
            [subject.namespace(), subject.name(), subject.uid(), &subject.to_string()].map(str::to_owned)
        };
        let name = PodName::parse("ns", "web-0").unwrap();
        let pod = Subject::from(PodReference { name, uid: PodUid::parse("u1").unwrap() });
        assert_eq!(told(&pod), ["ns", "web-0", "u1", "pod ns/web-0"]);
        assert_eq!(told(&Subject::Node("node-1".to_owned())), ["default", "node-1", "node-1", "node node-1"]);
    }

    #[test]
    fn c13_a_pod_is_its_uid() {
        assert!(pod(Some("u"), "/a").is_same_as(&pod(Some("u"), "/b")));
        assert!(!pod(Some("u"), "/a").is_same_as(&pod(Some("v"), "/a")));
    }

    #[test]
    fn c13_unknown_pods_are_the_same_only_at_one_target() {
        assert!(!pod(None, "/a").is_same_as(&pod(None, "/b")));
        assert!(!pod(Some("u"), "/a").is_same_as(&pod(None, "/b")));
        assert!(pod(None, "/a").is_same_as(&pod(None, "/a")));
        assert!(pod(Some("u"), "/a").is_same_as(&pod(None, "/a")));
    }

    #[test]
    fn c13_the_uid_comes_from_the_context_then_from_the_path() {
        let kubelet = KubeletDir::new("/k".into(), "/k".into());
        let target =
            TargetPath::parse("/k/pods/u-path/volumes/kubernetes.io~csi/pv/mount", &kubelet).unwrap();
        let of = |info: &PodInfo| Pod::of_request(info, &target, &kubelet).uid;
        let told = PodInfo { uid: Some("u-told".into()), ..PodInfo::default() };
        assert_eq!(of(&told), PodUid::parse("u-told"));
        assert_eq!(of(&PodInfo::default()), PodUid::parse("u-path"));
        let empty = PodInfo { uid: Some(String::new()), ..PodInfo::default() };
        assert_eq!(of(&empty), PodUid::parse("u-path"));
    }

    #[test]
    fn c12_a_holder_is_named_by_what_is_known() {
        let mut holder = pod(Some("u"), "/k/t");
        holder.name = PodName::parse("web", "a-0");
        assert_eq!(holder.to_string(), "pod web/a-0");
        assert_eq!(pod(Some("u"), "/k/t").to_string(), "the pod with UID u");
        assert_eq!(pod(None, "/k/t").to_string(), "the mount at /k/t");
    }
}
