//! The PersistentVolumes of the driver, reduced to what is shown: name, handle, phase, claim.

use serde::{Deserialize, Serialize};

use crate::api::{Api, Resource, Selector};
use crate::failure::Failure;

/// One PersistentVolume of this driver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    pub name: String,
    pub handle: String,
    /// `status.phase`, or `Terminating`.
    pub phase: String,
    /// Namespace and name of `spec.claimRef`.
    pub claim: Option<String>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: Spec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    csi: Option<Csi>,
    claim_ref: Option<ClaimRef>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Csi {
    driver: String,
    volume_handle: String,
}

#[derive(Deserialize)]
struct ClaimRef {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Status {
    phase: Option<String>,
}

/// All volumes of `driver_name`, by name.
pub async fn list(api: &Api, driver_name: &str) -> Result<Vec<Volume>, Failure> {
    let mut volumes = Vec::new();
    let keep = |object: Object| volumes.extend(object.reduced(driver_name));
    api.for_each(Resource::PERSISTENT_VOLUMES, None, &Selector::default(), keep).await?;
    volumes.sort();
    Ok(volumes)
}

impl Object {
    fn reduced(self, driver_name: &str) -> Option<Volume> {
        let csi = self.spec.csi.filter(|csi| csi.driver == driver_name)?;
        let phase = match self.metadata.deletion_timestamp {
            Some(_) => "Terminating".to_owned(),
            None => self.status.and_then(|status| status.phase).unwrap_or_else(|| "Pending".to_owned()),
        };
        let claim = self.spec.claim_ref.map(|claim| format!("{}/{}", claim.namespace, claim.name));
        Some(Volume { name: self.metadata.name, handle: csi.volume_handle, phase, claim })
    }
}
