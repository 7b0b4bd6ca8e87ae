//! From the messages on the wire to what the domain asks for. Nothing is checked here but what the wire itself
//! leaves open; secrets and attributes end here: there is no field for them on the other side.

use crate::domain::health::{Condition, Severity};
use crate::domain::pod::PodInfo;
use crate::domain::use_cases::statistics::Statistics;
use crate::domain::volume_request::{AccessType, PublishRequest, UnpublishRequest, VolumeCapability};
use crate::proto::csi;
use crate::proto::csi::volume_health::VolumeHealthEntry;
use crate::proto::csi::volume_usage::Unit;

/// The keys under which the kubelet tells of the pod (`podInfoOnMount`).
const POD_UID: &str = "csi.storage.k8s.io/pod.uid";
const POD_NAMESPACE: &str = "csi.storage.k8s.io/pod.namespace";
const POD_NAME: &str = "csi.storage.k8s.io/pod.name";

/// A publish.
pub(super) fn publish(request: csi::NodePublishVolumeRequest) -> PublishRequest {
    let mut context = request.volume_context;
    PublishRequest {
        volume_id: request.volume_id,
        target_path: request.target_path,
        capability: request.volume_capability.map(capability),
        readonly: request.readonly,
        pod: PodInfo {
            uid: context.remove(POD_UID),
            namespace: context.remove(POD_NAMESPACE),
            name: context.remove(POD_NAME),
        },
    }
}

/// An unpublish.
pub(super) fn unpublish(request: csi::NodeUnpublishVolumeRequest) -> UnpublishRequest {
    UnpublishRequest { volume_id: request.volume_id, target_path: request.target_path }
}

/// `fs_type` has no meaning here (C5).
fn capability(capability: csi::VolumeCapability) -> VolumeCapability {
    use csi::volume_capability::AccessType as Wire;
    let access_type = capability.access_type.map(|access_type| match access_type {
        Wire::Block(_) => AccessType::Block,
        Wire::Mount(mount) => {
            AccessType::Mount { flags: mount.mount_flags, volume_mount_group: mount.volume_mount_group }
        }
    });
    VolumeCapability { access_type, access_mode: capability.access_mode.map(|mode| mode.mode) }
}

/// The statistics of a copy: what it takes up, and what its file system has (C46).
pub(super) fn statistics(statistics: &Statistics) -> csi::NodeGetVolumeStatsResponse {
    let Statistics { usage, capacity } = statistics;
    let bytes = csi::VolumeUsage {
        available: on_the_wire(capacity.available_bytes),
        total: on_the_wire(capacity.total_bytes),
        used: on_the_wire(usage.used_bytes),
        unit: Unit::Bytes.into(),
    };
    let inodes = csi::VolumeUsage {
        available: on_the_wire(capacity.available_inodes),
        total: on_the_wire(capacity.total_inodes),
        used: on_the_wire(usage.used_inodes),
        unit: Unit::Inodes.into(),
    };
    csi::NodeGetVolumeStatsResponse { usage: vec![bytes, inodes] }
}

/// What is wrong with a copy, under the volume id that was asked about (C49).
pub(super) fn health(volume_id: String, conditions: &[Condition]) -> csi::NodeGetVolumeHealthResponse {
    let health_statuses = conditions.iter().map(entry).collect();
    csi::NodeGetVolumeHealthResponse { volume_health: Some(csi::VolumeHealth { volume_id, health_statuses }) }
}

fn entry(condition: &Condition) -> VolumeHealthEntry {
    use csi::VolumeHealthErrorType as Wire;
    let status = match condition.severity() {
        Severity::Degraded => Wire::Degraded,
        Severity::Inaccessible => Wire::Inaccessible,
        Severity::DataLoss => Wire::DataLoss,
    };
    let reason = condition.reason().to_owned();
    VolumeHealthEntry { status: status.into(), reason, message: condition.message() }
}

/// CSI counts in signed numbers and wants none negative; a file system that claims more (some answer the highest
/// number for "no limit") has as much as can be said.
fn on_the_wire(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ports::copies::{Capacity, Usage};

    fn context(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn c13_the_pod_is_read_from_the_volume_context() {
        let request = csi::NodePublishVolumeRequest {
            volume_context: context(&[
                ("csi.storage.k8s.io/pod.uid", "u"),
                ("csi.storage.k8s.io/pod.namespace", "ns"),
                ("csi.storage.k8s.io/pod.name", "p"),
            ]),
            // Not from here: nobody but the kubelet fills the volume context of a pod.
            publish_context: context(&[("csi.storage.k8s.io/pod.uid", "other")]),
            ..Default::default()
        };
        let pod = publish(request).pod;
        assert_eq!((pod.uid.as_deref(), pod.namespace.as_deref()), (Some("u"), Some("ns")));
        assert_eq!(pod.name.as_deref(), Some("p"));
        assert_eq!(publish(csi::NodePublishVolumeRequest::default()).pod, PodInfo::default());
    }

    #[test]
    fn c47_secrets_and_attributes_do_not_get_past_the_edge() {
        let request = csi::NodePublishVolumeRequest {
            secrets: context(&[("password", "tell-no-one")]),
            volume_context: context(&[("csi.storage.k8s.io/serviceAccount.tokens", "tell-no-one")]),
            publish_context: context(&[("key", "tell-no-one")]),
            ..Default::default()
        };
        assert!(!format!("{:?}", publish(request)).contains("tell-no-one"));
    }

    #[test]
    fn c46_no_number_is_negative() {
        let huge = Statistics {
            usage: Usage { used_bytes: 1, used_inodes: 2, complete: true },
            capacity: Capacity {
                total_bytes: u64::MAX,
                available_bytes: 3,
                total_inodes: 4,
                available_inodes: 5,
            },
        };
        let usage = statistics(&huge).usage;
        let numbers: Vec<_> = usage.iter().map(|u| (u.unit(), u.available, u.total, u.used)).collect();
        assert_eq!(numbers, [(Unit::Bytes, 3, i64::MAX, 1), (Unit::Inodes, 5, 4, 2)]);
    }

    #[test]
    fn c49_a_condition_keeps_its_severity_on_the_wire() {
        use csi::VolumeHealthErrorType as Wire;
        let told = health(
            "h".to_owned(),
            &[Condition::CopyGone, Condition::StoreReadOnly, Condition::StoreNearlyFull],
        );
        let told = told.volume_health.unwrap();
        let statuses: Vec<_> =
            told.health_statuses.iter().map(|it| (it.status(), it.reason.as_str())).collect();
        let expected = [
            (Wire::DataLoss, "CopyGone"),
            (Wire::Inaccessible, "StoreReadOnly"),
            (Wire::Degraded, "StoreNearlyFull"),
        ];
        assert_eq!((told.volume_id.as_str(), statuses.as_slice()), ("h", &expected[..]));
        assert_eq!(told.health_statuses[0].message, Condition::CopyGone.message());
        // REQUIRED, also where nothing is wrong.
        assert!(health("h".to_owned(), &[]).volume_health.unwrap().health_statuses.is_empty());
    }
}
