//! Reads the facts, once, with the caller's own rights. What may not be read, or fails, is noted and the rest goes on: only
//! the pod itself must be there.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Pod};
use per_node::adapters::kube::api_error::ApiError;
use per_node::domain::handle::Handle;
use per_node::proto::report::{Holder, NodeReport};
use serde_json::Value;

use super::facts::{Answer, ClaimFacts, Facts, HealthFact, HolderFact, Place, Seen, is_ours, reserves};
use super::volumes::handle;
use crate::api::{Api, Resource, Selector, failure};
use crate::failure::Failure;
use crate::installation::POD_LABELS;
use crate::plugins::{Plugin, Unheard};
use crate::seen::Unread;

/// Whose pod, and where the plugins are.
pub struct Asked<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub driver_name: &'a str,
    pub plugin_namespace: &'a str,
    pub node_deadline: Duration,
}

/// All facts of one pod.
///
/// # Errors
/// Where the pod itself cannot be read.
pub async fn gather(api: &Api, asked: &Asked<'_>) -> Result<Facts, Failure> {
    let namespace = asked.namespace;
    let Some(object) = api.get::<Value>(Resource::PODS, Some(namespace), asked.pod).await? else {
        return Err(Failure::Missing { why: format!("pod {namespace}/{} not found", asked.pod) });
    };
    let health = health(&object);
    let pod: Pod = serde_json::from_value(object).map_err(|_| {
        failure("get", Resource::PODS.name, Some(namespace), ApiError::Undecodable { what: "a pod" })
    })?;
    let mut unread = Unread::default();
    let claims = claims(api, asked, &pod, &mut unread).await;
    let of_pod = Selector {
        fields: format!("involvedObject.uid={}", pod.metadata.uid.as_deref().unwrap_or_default()),
        ..Selector::default()
    };
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|name| !name.is_empty());
    let all = Selector::default();
    let (events, csi_driver, neighbours, deployment) = tokio::join!(
        api.list::<Event>(Resource::EVENTS, Some(namespace), &of_pod),
        api.get(Resource::CSI_DRIVERS, None, asked.driver_name),
        api.list::<Pod>(Resource::PODS, Some(namespace), &all),
        deployment(api, namespace, &pod),
    );
    let mut facts = Facts {
        now: Timestamp::now(),
        driver_name: asked.driver_name.to_owned(),
        plugin_namespace: asked.plugin_namespace.to_owned(),
        claims,
        csi_driver: unread.optional(csi_driver),
        place: None,
        deployment: unread.optional(deployment),
        neighbours: unread.list(neighbours),
        health,
        events: unread.list(events),
        pod,
        unread: Vec::new(),
    };
    if let Some(node) = node {
        // The plugin has nothing under a name that is no handle, and says so.
        let handles = facts.volumes().map(|(_, volume)| handle(volume).to_owned());
        let handles: Vec<String> = handles.filter(|raw| Handle::parse(raw).is_ok()).collect();
        facts.place = Some(place(api, asked, node, &handles, &mut unread).await);
    }
    facts.unread = unread.0;
    Ok(facts)
}

/// `status.volumeHealth` of a pod, which the API's binding has no type for yet: each condition of a volume that is a claim.
pub fn health(pod: &Value) -> Vec<HealthFact> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let volumes = list(&pod["spec"]["volumes"]);
    let mut found = Vec::new();
    for of_volume in list(&pod["status"]["volumeHealth"]) {
        let volume = volumes.iter().find(|volume| volume["name"] == of_volume["name"]);
        let claim = volume.and_then(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
        let Some(claim) = claim else { continue };
        found.extend(list(&of_volume["healthConditions"]).iter().map(|condition| HealthFact {
            claim: claim.to_owned(),
            status: text(condition, "status"),
            reason: text(condition, "reason"),
            message: text(condition, "message"),
        }));
    }
    found
}

/// The pod's claims with their volumes. A claim is read by name, so that a pod of any size costs what it has.
async fn claims(api: &Api, asked: &Asked<'_>, pod: &Pod, unread: &mut Unread) -> Vec<ClaimFacts> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let sources = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let names: Vec<String> = sources.map(|source| source.claim_name.clone()).collect();
    let read = join_all(names.iter().map(|name| {
        api.get::<PersistentVolumeClaim>(Resource::PERSISTENT_VOLUME_CLAIMS, Some(asked.namespace), name)
    }));
    let mut claims = Vec::new();
    for (name, claim) in names.iter().zip(read.await) {
        let claim = unread.optional(claim);
        let (volume, candidates) = volumes_of(api, asked, &claim, unread).await;
        claims.push(ClaimFacts { name: name.clone(), claim, volume, candidates });
    }
    claims
}

/// The volume that the claim names, and for one that is not bound those that could be its.
async fn volumes_of(
    api: &Api,
    asked: &Asked<'_>,
    claim: &Seen<PersistentVolumeClaim>,
    unread: &mut Unread,
) -> (Seen<PersistentVolume>, Seen<Vec<PersistentVolume>>) {
    let Some(claim) = claim.is() else { return (Seen::Unasked, Seen::Unasked) };
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
    let volume = match named {
        Some(name) => unread.optional(api.get(Resource::PERSISTENT_VOLUMES, None, name).await),
        None => Seen::Unasked,
    };
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Pending") {
        return (volume, Seen::Unasked);
    }
    let mut found = Vec::new();
    let keep = |candidate: PersistentVolume| {
        let reference = candidate.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        if is_ours(&candidate, asked.driver_name) && reference.is_none_or(|one| reserves(one, claim)) {
            found.push(candidate);
        }
    };
    let read = api.for_each(Resource::PERSISTENT_VOLUMES, None, &Selector::default(), keep).await;
    let candidates = unread.list(read.map(|()| found));
    (volume, candidates)
}

/// The Deployment above the pod: a ReplicaSet's name is its Deployment's and a hash.
async fn deployment(api: &Api, namespace: &str, pod: &Pod) -> Result<Option<Deployment>, Failure> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut sets = owners.filter(|owner| owner.kind == "ReplicaSet" && owner.controller == Some(true));
    match sets.next().and_then(|set| set.name.rsplit_once('-')) {
        None => Ok(None),
        Some((name, _)) => api.get(Resource::DEPLOYMENTS, Some(namespace), name).await,
    }
}

async fn place(api: &Api, asked: &Asked<'_>, name: String, handles: &[String], unread: &mut Unread) -> Place {
    let on_node = Selector { labels: POD_LABELS.to_owned(), fields: format!("spec.nodeName={name}") };
    let (node, csi_node, plugins) = tokio::join!(
        api.get(Resource::NODES, None, &name),
        api.get(Resource::CSI_NODES, None, &name),
        api.list::<Pod>(Resource::PODS, Some(asked.plugin_namespace), &on_node),
    );
    let plugins = plugins.map(|found| {
        // Beside one that ends there may be the one that follows it.
        let (ending, there): (Vec<Pod>, Vec<Pod>) =
            found.into_iter().partition(|pod| pod.metadata.deletion_timestamp.is_some());
        there.into_iter().chain(ending).next()
    });
    let plugin = unread.optional(plugins);
    let (answer, silence) = match plugin.is().and_then(Plugin::of_object) {
        // Without a volume there is nobody to ask about, and a pod that does not run answers nothing.
        Some(plugin) if !handles.is_empty() && plugin.phase == "Running" => {
            match answer(api, asked, &plugin, handles).await {
                Ok(answer) => (Seen::Is(answer), None),
                Err(why) => (
                    unread.note(&format!("the node {} says nothing: {why}", plugin.node)),
                    why.is_silence().then(|| why.to_string()),
                ),
            }
        }
        Some(_) | None => (Seen::Unasked, None),
    };
    let (node, csi_node) = (unread.optional(node), unread.optional(csi_node));
    Place { name, node, csi_node, plugin, answer, silence }
}

/// What the plugin says of these handles. Part of an answer is none: a holder might be in the rest.
async fn answer(
    api: &Api,
    asked: &Asked<'_>,
    plugin: &Plugin,
    handles: &[String],
) -> Result<Answer, Unheard> {
    let mut answer = Answer::default();
    for handle in handles {
        let keep = |report: NodeReport| take(&mut answer, report);
        plugin.ask(api, asked.driver_name, Some(handle), asked.node_deadline, keep).await?;
    }
    Ok(answer)
}

fn take(answer: &mut Answer, report: NodeReport) {
    if let Some(sweep) = report.sweep {
        answer.not_ready = sweep.not_ready;
        answer.waiting = sweep.waiting_for;
    }
    for copy in report.copies {
        let handle = copy.handle;
        answer.holders.extend(copy.holders.into_iter().map(|holder| fact(handle.clone(), holder)));
    }
}

/// A holder as messages name it (C12): by namespace and name, else by UID, else by the path of its mount.
fn fact(handle: String, holder: Holder) -> HolderFact {
    let Holder { namespace, pod, uid, target, since, readonly: _ } = holder;
    let name = match (namespace, pod, &uid) {
        (Some(namespace), Some(pod), _) => format!("{namespace}/{pod}"),
        (_, _, Some(uid)) => format!("the pod with the UID {uid}"),
        (_, _, None) => format!("the mount at {target}"),
    };
    HolderFact { handle, name, uid, since: since.and_then(|since| since.parse().ok()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c12_a_holder_is_named_by_the_best_that_is_known() {
        let name = |namespace: Option<&str>, pod: Option<&str>, uid: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let (namespace, pod, uid) = (owned(namespace), owned(pod), owned(uid));
            let since = Some("2026-11-30T05:00:00Z".to_owned());
            let holder = Holder { namespace, pod, uid, target: "/t".into(), since, ..Holder::default() };
            fact("cache".into(), holder)
        };
        assert_eq!(name(Some("ci"), Some("a"), Some("u")).name, "ci/a");
        assert_eq!(name(None, Some("a"), Some("u")).name, "the pod with the UID u");
        let bare = name(None, None, None);
        assert_eq!((bare.name.as_str(), bare.since.is_some()), ("the mount at /t", true));
    }
}
