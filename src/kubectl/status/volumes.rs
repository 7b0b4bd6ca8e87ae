//! The PersistentVolumes of the driver and the claims they name, reduced to what is shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::api::{Api, Resource, Selector};
use crate::failure::Failure;

/// One PersistentVolume of this driver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Volume {
    pub name: String,
    pub handle: String,
    /// `status.phase`, or `Terminating`.
    pub phase: String,
    /// `spec.claimRef`.
    pub claim: Option<Claim>,
}

/// A claim by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    pub namespace: String,
    pub name: String,
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
    #[serde(default)]
    namespace: String,
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

#[derive(Deserialize)]
struct ClaimObject {
    metadata: Metadata,
    status: Option<Status>,
}

/// All volumes of `driver_name`.
pub async fn list(api: &Api, driver_name: &str) -> Result<Vec<Volume>, Failure> {
    let mut volumes = Vec::new();
    let keep = |object: Object| volumes.extend(object.reduced(driver_name));
    api.for_each(Resource::PERSISTENT_VOLUMES, None, &Selector::default(), keep).await?;
    Ok(volumes)
}

/// The phases of those claims of `volumes` that exist.
pub async fn claims(api: &Api, volumes: &[Volume]) -> Result<BTreeMap<Claim, String>, Failure> {
    let named: BTreeSet<&Claim> = volumes.iter().filter_map(|volume| volume.claim.as_ref()).collect();
    let mut phases = BTreeMap::new();
    let keep = |object: ClaimObject| {
        let phase = phase_of(&object.metadata, object.status);
        let claim = Claim { namespace: object.metadata.namespace, name: object.metadata.name };
        if named.contains(&claim) {
            phases.insert(claim, phase);
        }
    };
    api.for_each(Resource::PERSISTENT_VOLUME_CLAIMS, None, &Selector::default(), keep).await?;
    Ok(phases)
}

impl Object {
    fn reduced(self, driver_name: &str) -> Option<Volume> {
        let csi = self.spec.csi.filter(|csi| csi.driver == driver_name)?;
        let phase = phase_of(&self.metadata, self.status);
        let claim = self.spec.claim_ref.filter(|claim| !claim.name.is_empty());
        let claim = claim.map(|ClaimRef { namespace, name }| Claim { namespace, name });
        Some(Volume { name: self.metadata.name, handle: csi.volume_handle, phase, claim })
    }
}

/// The phase, and `Terminating` for what has been deleted and is still kept.
fn phase_of(metadata: &Metadata, status: Option<Status>) -> String {
    match metadata.deletion_timestamp {
        Some(_) => "Terminating".to_owned(),
        None => status.and_then(|status| status.phase).unwrap_or_else(|| "Pending".to_owned()),
    }
}
