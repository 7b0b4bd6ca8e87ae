//! Whether a volume can be released, and by which patch. Pure: objects in, a patch or a refusal out.
//!
//! Why the patch keeps the claim's name: without a `claimRef` any claim of the class could bind the volume and would be
//! handed the copies of somebody else. Without the UID the volume waits for a new claim of the same name, as it did when it
//! was written.

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use serde_json::{Value, json};
use thiserror::Error;

/// A volume that can be released.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// A merge patch with the revision that was judged: the API server refuses it for any other.
    pub patch: Value,
    /// The claim that the volume stays reserved for, as `namespace/name`.
    pub claim: String,
    /// The UID of the claim that is gone.
    pub uid: Option<String>,
    /// A claim of that name, made since, is there.
    pub claim_is_there: bool,
}

/// Why a volume is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("it is not a volume of {driver_name}: nothing here is for it")]
    OtherDriver { driver_name: String },
    #[error("it is being deleted, and its copies go with it: make the volume anew under another name")]
    Terminating,
    #[error("the claim {claim} still has it ({phase}): delete the claim first, if that is what you want")]
    ClaimHasIt { claim: String, phase: String },
    #[error("it is Available already: the claim {claim} binds once it is there")]
    Available { claim: String },
    #[error(
        "it is Failed, for its reclaim policy asked somebody to delete it and nobody does: set \
         spec.persistentVolumeReclaimPolicy to Retain, and take spec.claimRef.uid out by hand"
    )]
    Failed,
    #[error("its phase is {phase}, not Released: there is nothing to release")]
    NotReleased { phase: String },
    #[error("it names no claim: there is nothing to release")]
    NoClaim,
}

/// The patch that makes `volume` bindable again. `claim` is the claim that it names, as it is now.
pub fn judge(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
    driver_name: &str,
) -> Result<Release, Refusal> {
    let spec = volume.spec.as_ref();
    if spec.and_then(|spec| spec.csi.as_ref()).is_none_or(|csi| csi.driver != driver_name) {
        return Err(Refusal::OtherDriver { driver_name: driver_name.to_owned() });
    }
    if volume.metadata.deletion_timestamp.is_some() {
        return Err(Refusal::Terminating);
    }
    let reference = spec.and_then(|spec| spec.claim_ref.as_ref()).ok_or(Refusal::NoClaim)?;
    let name = name_of(reference);
    let uid_now = claim.and_then(|claim| claim.metadata.uid.as_deref());
    // Whatever the phase says: it is written after the fact, and the claim's UID is the fact.
    if let (Some(claim), Some(uid)) = (claim, reference.uid.as_deref())
        && uid_now == Some(uid)
    {
        let phase = claim.status.as_ref().and_then(|status| status.phase.clone());
        return Err(Refusal::ClaimHasIt { claim: name, phase: phase.unwrap_or_else(|| "Pending".into()) });
    }
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    match phase {
        "Released" => {}
        "Available" => return Err(Refusal::Available { claim: name }),
        "Failed" => return Err(Refusal::Failed),
        phase => return Err(Refusal::NotReleased { phase: phase.to_owned() }),
    }
    Ok(Release {
        patch: patch(volume),
        claim: name,
        uid: reference.uid.clone(),
        claim_is_there: claim.is_some(),
    })
}

fn patch(volume: &PersistentVolume) -> Value {
    json!({
        "metadata": {
            // A volume deleted and made anew under the name is another one.
            "uid": volume.metadata.uid,
            "resourceVersion": volume.metadata.resource_version,
        },
        "spec": {"claimRef": {"uid": null, "resourceVersion": null}},
    })
}

fn name_of(reference: &ObjectReference) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&reference.namespace), part(&reference.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(phase: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "cache", "uid": "pv-uid", "resourceVersion": "77"},
            "spec": {
                "csi": {"driver": "per-node.liken.sh", "volumeHandle": "cache"},
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "ci", "name": "cache", "uid": "gone",
                             "resourceVersion": "12"},
            },
            "status": {"phase": phase},
        })
    }

    fn claim(uid: &str, phase: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "ci", "name": "cache", "uid": uid}, "status": {"phase": phase},
        })
    }

    fn judged(volume: Value, claim: Option<Value>) -> Result<Release, Refusal> {
        let volume = serde_json::from_value(volume).expect("a volume");
        let claim = claim.map(|claim| serde_json::from_value(claim).expect("a claim"));
        judge(&volume, claim.as_ref(), "per-node.liken.sh")
    }

    #[test]
    fn c20_a_released_volume_loses_the_mark_of_its_claim_and_nothing_else() {
        let release = judged(volume("Released"), None).expect("released");
        assert_eq!(
            release.patch,
            json!({
                "metadata": {"uid": "pv-uid", "resourceVersion": "77"},
                "spec": {"claimRef": {"uid": null, "resourceVersion": null}},
            })
        );
        assert_eq!((release.claim.as_str(), release.uid.as_deref()), ("ci/cache", Some("gone")));
        assert!(!release.claim_is_there);
        // The claim made anew under the name is what one releases it for.
        let anew = judged(volume("Released"), Some(claim("new", "Pending"))).expect("released");
        assert!(anew.claim_is_there && anew.patch == release.patch);
    }

    #[test]
    fn a_volume_that_a_claim_still_has_is_left_whatever_its_phase_says() {
        for phase in ["Bound", "Released", "Available", "Failed"] {
            let refusal = judged(volume(phase), Some(claim("gone", "Bound"))).expect_err("refused");
            assert_eq!(refusal, Refusal::ClaimHasIt { claim: "ci/cache".into(), phase: "Bound".into() });
        }
    }

    #[test]
    fn every_other_refusal_says_why() {
        let mut other = volume("Released");
        other["spec"]["csi"]["driver"] = json!("other.example");
        let mut no_csi = volume("Released");
        no_csi["spec"]["csi"] = Value::Null;
        let mut going = volume("Released");
        going["metadata"]["deletionTimestamp"] = json!("2026-11-30T06:00:00Z");
        let mut unclaimed = volume("Available");
        unclaimed["spec"]["claimRef"] = Value::Null;
        let foreign = Refusal::OtherDriver { driver_name: "per-node.liken.sh".into() };
        for (volume, refusal) in [
            (other, foreign.clone()),
            (no_csi, foreign),
            (going, Refusal::Terminating),
            (unclaimed, Refusal::NoClaim),
            (volume("Available"), Refusal::Available { claim: "ci/cache".into() }),
            (volume("Failed"), Refusal::Failed),
            (volume("Bound"), Refusal::NotReleased { phase: "Bound".into() }),
            (volume("Pending"), Refusal::NotReleased { phase: "Pending".into() }),
        ] {
            assert_eq!(judged(volume, None).expect_err("refused"), refusal);
        }
    }
}
