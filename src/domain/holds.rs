//! Holds: which pods have a target that shows a copy now (C13–C15). The kernel's mounts say who holds; the
//! records beside the store only add what mounts do not know: names, `readonly`, and what is half done.

use serde::{Deserialize, Serialize};

use super::handle::Handle;
use super::mount_table::StoreMount;
use super::pod::{Pod, PodName, PodUid};
use super::target::{KubeletDir, TargetPath};
use super::time::Wall;

/// What the store remembers of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRecord {
    pub target: TargetPath,
    pub handle: Handle,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<PodUid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodName>,
    pub readonly: bool,
    pub state: TargetState,
    /// When the publish was answered OK, for people alone: nothing is decided by a calendar. `None` in the journal, and in
    /// what an older version wrote; an older version passes it over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Wall>,
}

/// How far a publish came (C16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetState {
    /// In the journal: not answered OK. What it made is to be undone by the next start.
    Attaching(Makes),
    /// Answered OK.
    Held,
}

/// What a publish makes for itself, and what undoing it takes away again. A target directory that was there
/// before stays (C12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Makes {
    pub copy: bool,
    pub target: bool,
}

/// The mounts of one handle, sorted by what they mean.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holds {
    /// One for each target that shows the copy's root, in path order, each target once.
    pub holders: Vec<Pod>,
    /// Mounts that keep the copy from being removed and nobody from publishing it: leftover subPath binds,
    /// an operator's binds.
    pub leftovers: Vec<TargetPath>,
}

impl TargetRecord {
    /// The pod that this record names.
    pub fn holder(&self) -> Pod {
        Pod { uid: self.uid.clone(), name: self.pod.clone(), target: self.target.clone() }
    }
}

impl Holds {
    /// Sorts `mounts`, all of one handle, by the rules of C15; `recorded` gives the store's record of a target.
    pub fn sort(
        mounts: &[StoreMount],
        kubelet_dir: &KubeletDir,
        recorded: impl Fn(&TargetPath) -> Option<TargetRecord>,
    ) -> Holds {
        let mut targets: Vec<(TargetPath, bool)> = mounts
            .iter()
            .map(|mount| {
                let target = TargetPath::from_mount_point(mount.mount_point.clone());
                (target, is_target(mount, kubelet_dir))
            })
            .collect();
        targets.sort();
        targets.dedup();
        let mut holds = Holds::default();
        for (target, is_target) in targets {
            if is_target {
                holds.holders.push(pod_at(target, kubelet_dir, &recorded));
            } else {
                holds.leftovers.push(target);
            }
        }
        holds
    }

    /// The first holder that is another pod.
    pub fn other_than(&self, pod: &Pod) -> Option<&Pod> {
        self.holders.iter().find(|holder| !holder.is_same_as(pod))
    }
}

/// Whether the mount is a pod's target: it shows the copy's root below the kubelet's directory and is none of the kubelet's
/// own binds (C15).
pub fn is_target(mount: &StoreMount, kubelet_dir: &KubeletDir) -> bool {
    let target = TargetPath::from_mount_point(mount.mount_point.clone());
    mount.shown.at_root && target.is_below(kubelet_dir) && !target.is_subpath_bind(kubelet_dir)
}

/// The pod whose target this is: by its record where there is one, else by the path.
pub fn pod_at(
    target: TargetPath,
    kubelet_dir: &KubeletDir,
    recorded: impl Fn(&TargetPath) -> Option<TargetRecord>,
) -> Pod {
    let record = recorded(&target);
    let (uid, name) = record.map_or((None, None), |record| (record.uid, record.pod));
    Pod { uid: uid.or_else(|| target.pod_uid(kubelet_dir)), name, target }
}

#[cfg(test)]
mod tests {
    use super::super::mount_table::{Place, Shown};
    use super::*;

    fn kubelet() -> KubeletDir {
        KubeletDir::new("/k".into(), "/k".into())
    }

    fn mount(at: &str, at_root: bool) -> StoreMount {
        let place = Place::Copy(Handle::parse("h").unwrap());
        StoreMount { mount_point: at.into(), shown: Shown { place, at_root, deleted: false } }
    }

    const TARGET: &str = "/k/pods/u-1/volumes/kubernetes.io~csi/pv/mount";

    #[test]
    fn c15_a_mount_alone_makes_a_hold_without_any_record() {
        let holds = Holds::sort(&[mount(TARGET, true)], &kubelet(), |_| None);
        assert_eq!(holds.holders.len(), 1);
        assert_eq!(holds.holders[0].uid, PodUid::parse("u-1"));
        assert_eq!(holds.holders[0].name, None);
    }

    #[test]
    fn c15_a_record_adds_the_name_and_never_the_hold() {
        let record = TargetRecord {
            target: TargetPath::from_mount_point(TARGET.into()),
            handle: Handle::parse("h").unwrap(),
            uid: PodUid::parse("u-1"),
            pod: PodName::parse("ns", "p"),
            readonly: false,
            state: TargetState::Held,
            since: None,
        };
        let with = Holds::sort(&[mount(TARGET, true)], &kubelet(), |_| Some(record.clone()));
        assert_eq!(with.holders[0].to_string(), "pod ns/p");
        assert_eq!(Holds::sort(&[], &kubelet(), |_| Some(record.clone())), Holds::default());
    }

    #[test]
    fn c40_a_record_of_an_older_version_is_read_and_one_of_this_version_by_an_older() {
        let older = r#"{"target":"/k/t","handle":"h","uid":"u-1","readonly":false,"state":"held"}"#;
        let record: TargetRecord = serde_json::from_str(older).unwrap();
        assert_eq!((record.since, serde_json::to_string(&record).unwrap().as_str()), (None, older));
        let record = TargetRecord { since: Some(Wall { unix_ms: 1_800_000_000_000 }), ..record };
        let newer = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<TargetRecord>(&newer).unwrap(), record);
        // What an older version knows, which asks for no more.
        #[derive(Deserialize)]
        struct Older {
            handle: Handle,
            state: TargetState,
        }
        let read: Older = serde_json::from_str(&newer).unwrap();
        assert_eq!((read.handle, read.state), (record.handle, TargetState::Held));
    }

    #[test]
    fn c16_a_hold_fits_wherever_its_journal_entry_did() {
        let makes = Makes { copy: true, target: true };
        let target = TargetPath::from_mount_point(TARGET.into());
        let handle = Handle::parse("h").unwrap();
        let state = TargetState::Attaching(makes);
        let journal =
            TargetRecord { target, handle, uid: None, pod: None, readonly: false, state, since: None };
        let since = Some(Wall { unix_ms: u64::from(u32::MAX) * 1000 });
        let held = TargetRecord { state: TargetState::Held, since, ..journal.clone() };
        let bytes = |record: &TargetRecord| serde_json::to_string(record).unwrap().len();
        assert!(bytes(&held) <= bytes(&journal));
    }

    #[test]
    fn c15_leftovers_hold_nothing() {
        let mounts = [
            mount("/k/pods/u-1/volume-subpaths/pv/main/0", false),
            mount("/k/pods/u-1/volume-subpaths/pv/main/1", true),
            mount("/mnt/operator", true),
            mount("/k/odd", false),
        ];
        let holds = Holds::sort(&mounts, &kubelet(), |_| None);
        assert_eq!(holds.holders, vec![]);
        assert_eq!(holds.leftovers.len(), 4);
    }

    #[test]
    fn c14_two_lines_of_one_target_are_one_hold_and_two_targets_two() {
        let twice = [mount(TARGET, true), mount(TARGET, true)];
        assert_eq!(Holds::sort(&twice, &kubelet(), |_| None).holders.len(), 1);
        let other = "/k/pods/u-1/volumes/kubernetes.io~csi/pv-2/mount";
        let holds = Holds::sort(&[mount(TARGET, true), mount(other, true)], &kubelet(), |_| None);
        assert_eq!(holds.holders.len(), 2);
        let same = Pod {
            uid: PodUid::parse("u-1"),
            name: None,
            target: TargetPath::from_mount_point("/k/x".into()),
        };
        assert_eq!(holds.other_than(&same), None);
    }
}
