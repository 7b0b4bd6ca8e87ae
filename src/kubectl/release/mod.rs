//! `kubectl per-node release`: a Released PersistentVolume becomes bindable again, and every copy stays where it is.
//!
//! It shows the patch first and asks. It never touches a volume that a claim still has, that is being deleted, or that is
//! another driver's, and it never takes a volume's claim away: only the mark of a claim that is gone.

mod flags;
mod judge;

pub use flags::ReleaseFlags;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use per_node::adapters::kube::api_error::ApiError;

use crate::agree::{self, Agreement};
use crate::api::{Api, Resource};
use crate::cli::ReachFlags;
use crate::connect::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use judge::{Release, judge};

/// Judges, shows, asks, patches.
pub async fn run(reach: &ReachFlags, flags: ReleaseFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let name = &flags.name;
    let Some(volume) = api.get::<PersistentVolume>(Resource::PERSISTENT_VOLUMES, None, name).await? else {
        return Err(Failure::Missing { why: format!("PersistentVolume {name} not found") });
    };
    let claim = claim_of(&api, &volume).await?;
    let release = match judge(&volume, claim.as_ref(), &reach.driver_name) {
        Ok(release) => release,
        Err(refusal) => {
            output::say(&format!("persistentvolume/{name}: {refusal}"));
            return Ok(Exit::Refused);
        }
    };
    output::print(&shown(name, &release)?)?;
    match agree::agree("Release it?", flags.yes)? {
        Agreement::Given => {}
        Agreement::Refused => return Ok(Exit::Refused),
    }
    match api.patch(Resource::PERSISTENT_VOLUMES, None, name, &release.patch).await {
        Ok(()) => {
            let next = if release.claim_is_there { "binds now" } else { "binds once it is made" };
            output::print(&format!(
                "persistentvolume/{name} released: the claim {} {next}\n",
                release.claim
            ))?;
            Ok(Exit::Complete)
        }
        // The patch carries the revision that was judged: whatever came between, nothing was changed.
        Err(Failure::Api { why: ApiError::Conflict, .. }) => {
            output::say(&format!(
                "persistentvolume/{name} changed meanwhile, and nothing was done: look at it and run this again"
            ));
            Ok(Exit::Refused)
        }
        Err(failure) => Err(failure),
    }
}

/// The claim that the volume names, as it is now.
async fn claim_of(api: &Api, volume: &PersistentVolume) -> Result<Option<PersistentVolumeClaim>, Failure> {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    match reference.and_then(|claim| Some((claim.namespace.as_deref()?, claim.name.as_deref()?))) {
        None => Ok(None),
        Some((namespace, name)) => api.get(Resource::PERSISTENT_VOLUME_CLAIMS, Some(namespace), name).await,
    }
}

fn shown(name: &str, release: &Release) -> Result<String, Failure> {
    let patch = serde_json::to_string_pretty(&release.patch)
        .map_err(|error| Failure::Local { what: "the patch cannot be written", why: error.to_string() })?;
    let binds = if release.claim_is_there {
        format!("the claim {} that is there now", release.claim)
    } else {
        format!("a new claim {}", release.claim)
    };
    Ok(format!(
        "persistentvolume/{name} is Released: the claim {}{} is gone.\n\
         This merge patch takes out the mark of that claim and keeps its name: {binds} can bind the volume, and no other\n\
         claim. No copy is touched. It is refused if the volume changes before it arrives.\n{patch}\n",
        release.claim,
        release.uid.as_ref().map(|uid| format!(" with the UID {uid}")).unwrap_or_default(),
    ))
}
