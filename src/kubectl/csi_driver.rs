//! The CSIDriver object: what differs from the one that deploy/ installs, and what each difference does to pods.
//!
//! A field that deploy/ leaves unset is the operator's to decide and is not judged.

use k8s_openapi::api::storage::v1::{CSIDriver, CSIDriverSpec};

use crate::installation;

/// How the object is made, and mended, without touching anything else of an installation.
pub const MAKE: &str = "kubectl apply -f deploy/base/csi-driver.yaml (where Helm installed it: helm upgrade per-node deploy/chart \
                        -n per-node --reset-then-reuse-values --force-conflicts; each driver name has its own)";

/// A field that is not as installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub field: &'static str,
    pub is: String,
    pub should_be: String,
    /// What it does.
    pub consequence: &'static str,
    /// No pod gets a volume of the driver like this.
    pub blocks: bool,
    /// The API server takes no change of the field: the object has to be made anew.
    pub immutable: bool,
}

/// Every field that differs, those first that keep pods waiting.
pub fn differences(found: &CSIDriver) -> Vec<Difference> {
    let installed = installation::csi_driver();
    let mut differences = compare(&found.spec, &installed.spec);
    differences.sort_by_key(|difference| !difference.blocks);
    differences
}

/// What to do about an object with that difference.
pub fn remedy(difference: &Difference, driver_name: &str) -> String {
    if difference.immutable {
        format!("kubectl delete csidriver {driver_name}; then {MAKE}")
    } else {
        MAKE.to_owned()
    }
}

fn compare(found: &CSIDriverSpec, installed: &CSIDriverSpec) -> Vec<Difference> {
    // Left unset, each of these has a default of Kubernetes.
    let boolean = |is: Option<bool>, default: bool| is.unwrap_or(default).to_string();
    let modes = |spec: &CSIDriverSpec| match spec.volume_lifecycle_modes.as_deref() {
        None | Some([]) => "Persistent".to_owned(),
        Some(modes) => modes.join(", "),
    };
    let policy = |spec: &CSIDriverSpec| {
        spec.fs_group_policy.clone().unwrap_or_else(|| "ReadWriteOnceWithFSType".to_owned())
    };
    let lacks_persistent = !modes(found).contains("Persistent");
    let rows = [
        (
            "attachRequired",
            boolean(found.attach_required, true),
            boolean(installed.attach_required, true),
            "pods wait for an attachment that no controller makes",
            (true, true),
        ),
        (
            "volumeLifecycleModes",
            modes(found),
            modes(installed),
            "the kubelet refuses volumes of a mode that is not listed",
            (lacks_persistent, true),
        ),
        (
            "podInfoOnMount",
            boolean(found.pod_info_on_mount, false),
            boolean(installed.pod_info_on_mount, false),
            "the plugin is told no pod's name: holders are named by UID, and refusals are posted on no pod",
            (false, false),
        ),
        (
            "fsGroupPolicy",
            policy(found),
            policy(installed),
            "the kubelet may walk and change a whole copy at each mount",
            (false, false),
        ),
        (
            "requiresRepublish",
            boolean(found.requires_republish, false),
            boolean(installed.requires_republish, false),
            "the kubelet publishes every volume anew all the time",
            (false, false),
        ),
        (
            "storageCapacity",
            boolean(found.storage_capacity, false),
            boolean(installed.storage_capacity, false),
            "the scheduler looks for capacity that nobody reports",
            (false, false),
        ),
        (
            "seLinuxMount",
            boolean(found.se_linux_mount, false),
            boolean(installed.se_linux_mount, false),
            "the kubelet asks for mounts with a label of their own, which the plugin refuses",
            (false, false),
        ),
    ];
    let differ = rows.into_iter().filter(|(_, is, should_be, _, _)| is != should_be);
    differ
        .map(|(field, is, should_be, consequence, (blocks, immutable))| Difference {
            field,
            is,
            should_be,
            consequence,
            blocks,
            immutable,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deploy_installs_differs_in_nothing() {
        assert_eq!(differences(&installation::csi_driver()), []);
    }

    #[test]
    fn each_field_that_deploy_sets_is_judged() {
        type Case = (&'static str, fn(&mut CSIDriverSpec), bool);
        let cases: [Case; 8] = [
            ("attachRequired", |spec| spec.attach_required = Some(true), true),
            ("attachRequired", |spec| spec.attach_required = None, true),
            (
                "volumeLifecycleModes",
                |spec| spec.volume_lifecycle_modes = Some(vec!["Ephemeral".into()]),
                true,
            ),
            ("podInfoOnMount", |spec| spec.pod_info_on_mount = None, false),
            ("fsGroupPolicy", |spec| spec.fs_group_policy = None, false),
            ("requiresRepublish", |spec| spec.requires_republish = Some(true), false),
            ("storageCapacity", |spec| spec.storage_capacity = Some(true), false),
            ("seLinuxMount", |spec| spec.se_linux_mount = Some(true), false),
        ];
        for (field, change, blocks) in cases {
            let mut object = installation::csi_driver();
            change(&mut object.spec);
            let found = differences(&object);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((found[0].field, found[0].blocks), (field, blocks));
        }
        // Every field of the manifest has its row above: a field that is set there one day has to be judged here.
        let spec = serde_json::to_value(installation::csi_driver().spec).expect("a spec");
        for field in spec.as_object().expect("fields").keys() {
            assert!(cases.iter().any(|(judged, _, _)| judged == field), "{field} is not judged");
        }
        let both = {
            let mut object = installation::csi_driver();
            object.spec.volume_lifecycle_modes = Some(vec!["Ephemeral".into(), "Persistent".into()]);
            object.spec.attach_required = None;
            differences(&object)
        };
        assert_eq!(
            both.iter().map(|one| one.field).collect::<Vec<_>>(),
            ["attachRequired", "volumeLifecycleModes"]
        );
        assert!(!both[1].blocks);
        assert!(remedy(&both[0], "d").starts_with("kubectl delete csidriver d"));
    }
}
