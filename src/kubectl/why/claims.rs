//! Causes between a pod and its volume: the claim, and whether Kubernetes can bind it.
//!
//! The rules are those of its volume binder. A volume reserved for a claim (`claimRef`) is bound whatever its class; one that
//! the claim names (`volumeName`), or that is nobody's, must be of the claim's class too.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use super::causes::runs;
use super::facts::{ClaimFacts, Facts, full_name, is_ours, name, reserves};
use super::finding::Finding;
use crate::manifest::STORAGE_CLASS;
use crate::quantity::Quantity;

/// Volumes that are nobody's are compared with a claim up to this many: the nearest come first.
const NEAR_MISSES_MAX: usize = 3;

pub fn claim_missing(facts: &Facts) -> Vec<Finding> {
    let missing = facts.claims.iter().filter(|one| one.claim.is_absent());
    missing
        .map(|one| {
            let namespace = facts.namespace();
            Finding::certain(format!("The claim {namespace}/{} does not exist.", one.name))
                .because(format!(
                    "the pod's spec.volumes names it; there is none in the namespace {namespace}"
                ))
                .then(format!(
                    "Make it: kubectl per-node manifest {} -n {namespace} --size SIZE | kubectl apply -f -",
                    one.name
                ))
        })
        .collect()
}

pub fn claim_terminating(facts: &Facts) -> Vec<Finding> {
    let claims = facts.claims.iter().filter_map(|one| one.claim.is());
    claims
        .filter(|claim| claim.metadata.deletion_timestamp.is_some())
        .map(|claim| {
            Finding::certain(format!("The claim {} is being deleted.", full_name(&claim.metadata)))
                .because("it has a deletionTimestamp: no new pod gets it, and it goes when the last pod has gone")
                .then("Delete this pod, wait until the claim has gone, make the claim anew, and release its volume.")
        })
        .collect()
}

/// Told of a pod that runs too: its copy goes when it ends (C21).
pub fn claim_lost(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &facts.claims {
        let Some(claim) = one.claim.is().filter(|claim| phase(claim) == "Lost") else { continue };
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
        let claim_name = full_name(&claim.metadata);
        let anew = format!("kubectl per-node manifest {volume} -n {} --size SIZE", facts.namespace());
        let (sentence, remedy) = if one.volume.is().is_some() {
            (
                format!(
                    "The claim {claim_name} has lost the volume {volume}, which was made anew or is another claim's."
                ),
                format!(
                    "Make the claim {claim_name} anew, and leave the volume: deleting a volume deletes its copies."
                ),
            )
        } else if runs(facts) {
            (
                format!(
                    "The volume {volume} of the claim {claim_name} is gone, and this pod's copy goes when the pod ends."
                ),
                format!(
                    "To keep it, make the volume with the same handle before the pod ends: {anew}; the claim after that."
                ),
            )
        } else {
            (
                format!("The volume {volume} of the claim {claim_name} has been deleted."),
                format!(
                    "See what is left (kubectl per-node status {volume}); then make the volume with the same handle ({anew}), and \
                     the claim."
                ),
            )
        };
        let finding = if runs(facts) { Finding::note(sentence) } else { Finding::certain(sentence) };
        findings.push(finding.because("the claim's phase is Lost").then(remedy));
    }
    findings
}

pub fn claim_ref_uid(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (claim, volume) in wanted(facts) {
        let Some((reference, uid)) = claim_ref(volume).and_then(|one| Some((one, one.uid.as_deref()?)))
        else {
            continue;
        };
        if reserves(reference, claim) && claim.metadata.uid.as_deref() != Some(uid) {
            let (volume, claim_name) = (name(&volume.metadata), full_name(&claim.metadata));
            let finding = Finding::certain(format!(
                "The volume {volume} still belongs to an earlier claim of the name {claim_name}, which is gone."
            ))
            .because(format!("spec.claimRef.uid of the volume is {uid}"))
            .because(format!("the claim's UID is {}", claim.metadata.uid.as_deref().unwrap_or_default()))
            .then(format!("kubectl per-node release {volume}"));
            findings.push(finding);
        }
    }
    findings
}

pub fn volume_missing(facts: &Facts) -> Vec<Finding> {
    let missing = facts.claims.iter().filter(|one| one.volume.is_absent());
    missing
        .filter_map(|one| {
            let claim = one.claim.is()?;
            let volume = claim.spec.as_ref()?.volume_name.as_deref()?;
            (phase(claim) != "Lost").then(|| {
                Finding::certain(format!("The volume {volume} does not exist."))
                    .because(format!("spec.volumeName of the claim {} names it", full_name(&claim.metadata)))
                    .then(format!(
                        "Make it: kubectl per-node manifest {volume} -n {} --size SIZE",
                        facts.namespace()
                    ))
            })
        })
        .collect()
}

pub fn volume_of_another_claim(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in facts.claims.iter() {
        let (Some(claim), Some(volume)) = (pending(one), one.volume.is()) else { continue };
        let Some(reference) = claim_ref(volume).filter(|reference| !reserves(reference, claim)) else {
            continue;
        };
        let owner = format!(
            "{}/{}",
            reference.namespace.as_deref().unwrap_or_default(),
            reference.name.as_deref().unwrap_or_default()
        );
        let (volume, claim_name) = (name(&volume.metadata), full_name(&claim.metadata));
        let finding = Finding::certain(format!("The volume {volume} is reserved for the claim {owner}."))
            .because(format!(
                "spec.claimRef of the volume; the claim {claim_name} names it in spec.volumeName"
            ))
            .then(format!(
                "Make a volume of its own for {claim_name}, or let the pod use the claim {owner}."
            ));
        findings.push(finding);
    }
    findings
}

pub fn reserved_volume_terminating(facts: &Facts) -> Vec<Finding> {
    wanted(facts)
        .filter(|(_, volume)| volume.metadata.deletion_timestamp.is_some())
        .map(|(claim, volume)| {
            let (volume, claim) = (name(&volume.metadata), full_name(&claim.metadata));
            Finding::certain(format!("The volume {volume} of the claim {claim} is being deleted."))
                .because("it has a deletionTimestamp: nothing binds it any more, and its copies go with it")
                .then("Wait until it has gone, and make it anew.")
        })
        .collect()
}

pub fn class_mismatch(facts: &Facts) -> Vec<Finding> {
    mismatches(facts, |claim, volume, tie| {
        let of_claim = claim.storage_class_name.as_deref().unwrap_or_default();
        let of_volume = volume.storage_class_name.as_deref().unwrap_or_default();
        (of_claim != of_volume && tie != Tie::Reserved).then(|| Mismatch {
            what: "class",
            field: "spec.storageClassName",
            of_claim: format!("{of_claim:?}"),
            of_volume: format!("{of_volume:?}"),
            remedy: "Make the claim anew with the volume's class: a claim's class cannot be changed.",
        })
    })
}

pub fn mode_mismatch(facts: &Facts) -> Vec<Finding> {
    mismatches(facts, |claim, volume, _| {
        let of_claim = claim.access_modes.clone().unwrap_or_default();
        let of_volume = volume.access_modes.clone().unwrap_or_default();
        of_claim.iter().any(|mode| !of_volume.contains(mode)).then(|| Mismatch {
            what: "access mode",
            field: "spec.accessModes",
            of_claim: of_claim.join(", "),
            of_volume: of_volume.join(", "),
            remedy: "Make the claim anew with the volume's access mode, or change spec.accessModes of the volume.",
        })
    })
}

pub fn size_mismatch(facts: &Facts) -> Vec<Finding> {
    mismatches(facts, |claim, volume, _| {
        let requests = claim.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let (of_claim, of_volume) = (storage(requests)?, storage(volume.capacity.as_ref())?);
        let larger = Quantity::parse(of_claim).ok()? > Quantity::parse(of_volume).ok()?;
        larger.then(|| Mismatch {
            what: "size",
            field: "storage",
            of_claim: of_claim.to_owned(),
            of_volume: of_volume.to_owned(),
            remedy: "Raise spec.capacity.storage of the volume to what the claim asks for: no size is enforced.",
        })
    })
}

pub fn volume_mode_mismatch(facts: &Facts) -> Vec<Finding> {
    mismatches(facts, |claim, volume, _| {
        let of_claim = claim.volume_mode.as_deref().unwrap_or("Filesystem");
        let of_volume = volume.volume_mode.as_deref().unwrap_or("Filesystem");
        (of_claim != of_volume).then(|| Mismatch {
            what: "volume mode",
            field: "spec.volumeMode",
            of_claim: of_claim.to_owned(),
            of_volume: of_volume.to_owned(),
            remedy: "Make both anew with volumeMode: Filesystem, which is all that this driver serves.",
        })
    })
}

pub fn no_volume_for_claim(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &facts.claims {
        let (Some(claim), Some(_)) = (pending(one), one.candidates.is()) else { continue };
        let spec = claim.spec.as_ref();
        let class = spec.and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or_default();
        let names_one = spec.is_some_and(|spec| spec.volume_name.is_some());
        let tied = ties(facts, one, claim).iter().any(|(_, tie)| *tie != Tie::Free);
        if names_one || class != STORAGE_CLASS || tied {
            continue;
        }
        let finding = Finding::likely(format!("No volume is there for the claim {}.", full_name(&claim.metadata)))
            .because(format!(
                "it is Pending, its class is {class}, and no PersistentVolume of {} has its name in spec.claimRef",
                facts.driver_name
            ))
            .then(format!(
                "Nothing is provisioned here, so make one: kubectl per-node manifest {} -n {} --size SIZE",
                one.name,
                facts.namespace()
            ));
        findings.push(finding);
    }
    findings
}

/// How a volume is tied to a claim that is not bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// The volume's claimRef names the claim.
    Reserved,
    /// The claim's volumeName names the volume.
    Named,
    /// Neither: it is one of the driver's that nobody has.
    Free,
}

/// Two fields that do not fit.
struct Mismatch {
    what: &'static str,
    field: &'static str,
    of_claim: String,
    of_volume: String,
    remedy: &'static str,
}

/// Compares each claim that waits with the volumes that could be its.
fn mismatches(
    facts: &Facts,
    compare: impl Fn(&PersistentVolumeClaimSpec, &PersistentVolumeSpec, Tie) -> Option<Mismatch>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in &facts.claims {
        let Some(claim) = pending(one) else { continue };
        for (volume, tie) in ties(facts, one, claim) {
            let (Some(of_claim), Some(of_volume)) = (&claim.spec, &volume.spec) else { continue };
            let Some(mismatch) = compare(of_claim, of_volume, tie) else { continue };
            let Mismatch { what, field, of_claim, of_volume, remedy } = mismatch;
            let (claim_name, volume) = (full_name(&claim.metadata), name(&volume.metadata));
            let sentence =
                format!("The claim {claim_name} and the volume {volume} do not fit: another {what}.");
            let finding = match tie {
                Tie::Reserved | Tie::Named => Finding::certain(sentence),
                Tie::Free => Finding::likely(sentence),
            };
            findings.push(
                finding
                    .because(format!("{field}: the claim has {of_claim}, the volume {of_volume}"))
                    .then(remedy),
            );
        }
    }
    findings
}

/// The volumes that the claim could be bound to: those tied to it, else the nearest of the driver's that nobody has.
fn ties<'f>(
    facts: &'f Facts,
    one: &'f ClaimFacts,
    claim: &PersistentVolumeClaim,
) -> Vec<(&'f PersistentVolume, Tie)> {
    let named = one.volume.is().filter(|volume| is_ours(volume, &facts.driver_name));
    let mut tied: Vec<_> = named.map(|volume| (volume, Tie::Named)).into_iter().collect();
    let listed = one.candidates.is().map(Vec::as_slice).unwrap_or_default();
    let reserves_it = |volume: &&PersistentVolume| claim_ref(volume).is_some_and(|one| reserves(one, claim));
    if tied.is_empty() {
        tied.extend(listed.iter().filter(reserves_it).map(|volume| (volume, Tie::Reserved)));
    }
    if tied.is_empty() {
        let free = listed.iter().filter(|volume| claim_ref(volume).is_none());
        let mut free: Vec<_> = free.map(|volume| (volume, Tie::Free)).collect();
        free.sort_by_key(|(volume, _)| name(&volume.metadata) != one.name);
        free.truncate(NEAR_MISSES_MAX);
        tied = free;
    }
    tied
}

/// Each claim that waits with each volume that is tied to it.
fn wanted(facts: &Facts) -> impl Iterator<Item = (&PersistentVolumeClaim, &PersistentVolume)> {
    facts.claims.iter().filter_map(|one| Some((one, pending(one)?))).flat_map(|(one, claim)| {
        let tied = ties(facts, one, claim).into_iter();
        tied.filter(|(_, tie)| *tie != Tie::Free).map(move |(volume, _)| (claim, volume))
    })
}

/// The claim, where it is there and not bound.
fn pending(one: &ClaimFacts) -> Option<&PersistentVolumeClaim> {
    one.claim.is().filter(|claim| phase(claim) == "Pending")
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

fn claim_ref(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref())
}

fn storage(of: Option<&BTreeMap<String, Written>>) -> Option<&str> {
    of?.get("storage").map(|written| written.0.as_str())
}
