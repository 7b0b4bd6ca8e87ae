//! What a node says of its copies: the JSON of `/copies` and of `per-node ls -o json`. docs/kubectl.md is its description.
//!
//! Whoever reads it first looks at `apiVersion`: fields are only ever added to one version, and a field that is not there is
//! not known. No name of anything inside a copy has a place in it.

use serde::{Deserialize, Serialize};

/// The version that this code writes and reads.
pub const API_VERSION: &str = "per-node.liken.sh/v1";
/// The kind of a node's report.
pub const NODE_COPIES: &str = "NodeCopies";
/// The kind of a refusal to give one.
pub const REFUSAL: &str = "Refusal";
/// The header that carries the UID of the plugin's own pod, without which nothing is told.
pub const KEY_HEADER: &str = "x-per-node-pod-uid";
/// Copies of one page; what was cut off is asked for with `?after=`.
pub const PAGE_COPIES_MAX: usize = 500;
/// Entries of the trash that are listed; `trashTotal` counts all.
pub const TRASH_MAX: usize = 500;

/// What can be read of any version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub api_version: String,
    pub kind: String,
}

/// Why nothing is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalToTell {
    pub api_version: String,
    pub kind: String,
    pub message: String,
}

/// One node, as far as it fits one page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    pub api_version: String,
    pub kind: String,
    /// The driver's name.
    pub driver: String,
    /// The node's name.
    pub node: String,
    /// The plugin's version.
    pub version: String,
    /// The node's time, RFC 3339.
    pub at: String,
    /// Since when the plugin runs: refusals before are not listed. Missing where no plugin was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The plugin's part; missing where no plugin was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// By handle.
    #[serde(default)]
    pub copies: Vec<Copy>,
    /// All copies, also those of other pages.
    #[serde(default)]
    pub copies_total: u64,
    /// When `copies/` was last listed; copies made and removed since are counted in and out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<String>,
    /// The last handle of this page, where more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Removed copies that are not gone yet; on the first page alone, as are the refusals.
    #[serde(default)]
    pub trash: Vec<TrashEntry>,
    #[serde(default)]
    pub trash_total: u64,
    /// Of the last hour, the latest first.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
}

/// What readyz says too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sweep {
    /// Why the driver is not ready; empty where it is.
    #[serde(default)]
    pub not_ready: Vec<String>,
    /// What somebody should see of a driver that is ready.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether the PersistentVolumes were read: without that nothing is known of orphans.
    #[serde(default)]
    pub synced: bool,
    /// Whether the watch is open now.
    #[serde(default)]
    pub live: bool,
    /// Why removals wait for `per-node confirm`: `revision`, `marker_missing` or `marker_differs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// Copies whose removal waits for the watch (C27).
    #[serde(default)]
    pub searching: u64,
    /// Removals that failed at the latest pass.
    #[serde(default)]
    pub stuck: u64,
}

/// The store's file system, when it was last asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    pub total_bytes: u64,
    pub available_bytes: u64,
    pub total_inodes: u64,
    pub available_inodes: u64,
    pub measured_at: String,
}

/// One copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Copy {
    pub handle: String,
    /// As last counted; missing before the first walk has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// No PersistentVolume names it, as far as this node knows; missing where it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan: Option<bool>,
    /// By target.
    #[serde(default)]
    pub holders: Vec<Holder>,
    /// Mounts that are no pod's target and keep the copy from being removed, as of the latest look at all mounts.
    #[serde(default)]
    pub leftover_mounts: u64,
}

/// A target that shows the copy, and the pod it belongs to as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The path on the node.
    pub target: String,
    /// When it was published; missing for what a version without this field published, and for what has no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Missing for what has no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readonly: Option<bool>,
}

/// A removed copy that is not gone yet: on its way out, or kept (C26).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrashEntry {
    /// The name below `trash/`.
    pub id: String,
    pub handle: String,
    /// When it was removed; this and the rest only of a copy that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<String>,
    /// As last counted before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How much longer it is kept, at least; 0 where its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_seconds: Option<u64>,
}

/// A refused publish that repeats.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Missing where what was asked for is no handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The reason of the event.
    pub reason: String,
    pub message: String,
    pub count: u64,
    pub first: String,
    pub last: String,
}

/// RFC 3339 in whole seconds, rounded down.
#[must_use]
pub fn timestamp(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_of_utc() {
        assert_eq!(timestamp(1_796_000_000_999), "2026-11-30T00:53:20Z");
    }

    #[test]
    fn a_later_versions_fields_are_passed_over_and_missing_ones_are_not_known() {
        let text = r#"{"apiVersion":"per-node.liken.sh/v1","kind":"NodeCopies","driver":"d","node":"n","version":"9",
            "at":"2026-11-30T00:00:00Z","news":{"x":1},"copies":[{"handle":"a","colour":"red"}]}"#;
        let report: NodeReport = serde_json::from_str(text).expect("readable");
        assert_eq!(report.copies, [Copy { handle: "a".into(), ..Copy::default() }]);
        assert_eq!((report.sweep, report.copies[0].orphan), (None, None));
    }
}
