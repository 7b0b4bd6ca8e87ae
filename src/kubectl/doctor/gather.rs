//! Reads the facts, once, with the caller's own rights: lists of the nodes' objects, and each plugin's word, in parallel with a
//! bound. What may not be read, or does not answer, is noted and the rest goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::facts::{Facts, Heard, NodeFacts, Right};
use crate::api::{Api, Resource, Selector};
use crate::failure::Failure;
use crate::installation::{self, POD_LABELS};
use crate::plugins::{Plugin, Unheard};
use crate::seen::{Seen, Unread};

/// Plugins that are asked at the same time.
const NODES_AT_ONCE: usize = 64;
/// A handle that nobody needs to have: what is asked of it alone comes without the list of copies.
const NO_COPY: &str = "per-node-doctor";

/// What is asked.
pub struct Asked<'a> {
    pub driver_name: &'a str,
    pub plugin_namespace: &'a str,
    /// This node alone.
    pub node: Option<&'a str>,
    pub node_deadline: Duration,
}

/// All facts.
pub async fn gather(api: &Api, asked: &Asked<'_>) -> Result<Facts, Failure> {
    let namespace = Some(asked.plugin_namespace);
    let labelled = Selector { labels: POD_LABELS.to_owned(), ..Selector::default() };
    let on_node = |field: &str| asked.node.map(|node| format!("{field}={node}")).unwrap_or_default();
    let of_name = Selector { fields: on_node("metadata.name"), ..Selector::default() };
    let of_node = Selector { fields: on_node("spec.nodeName"), ..labelled.clone() };
    // The driver's own alone: a cluster has many events.
    let refusals = Selector { fields: "reason=PerNodeVolumeHeld".to_owned(), ..Selector::default() };
    let failed = Selector {
        fields: "reason=FailedCreate,involvedObject.kind=DaemonSet".to_owned(),
        ..Selector::default()
    };
    let (nodes, csi_nodes, plugins, daemon_sets, csi_driver, events, failed) = tokio::join!(
        api.list::<Node>(Resource::NODES, None, &of_name),
        api.list::<CSINode>(Resource::CSI_NODES, None, &of_name),
        api.list::<Pod>(Resource::PODS, namespace, &of_node),
        api.list(Resource::DAEMON_SETS, namespace, &labelled),
        api.get(Resource::CSI_DRIVERS, None, asked.driver_name),
        api.list::<Event>(Resource::EVENTS, None, &refusals),
        api.list::<Event>(Resource::EVENTS, namespace, &failed),
    );
    if let (Some(node), Ok(found)) = (asked.node, &nodes)
        && found.is_empty()
    {
        return Err(Failure::Missing { why: format!("node {node} not found") });
    }
    let mut unread = Unread::default();
    let (nodes, csi_nodes) = (unread.list(nodes), unread.list(csi_nodes));
    let plugins = unread.list(plugins);
    let account = plugins.is().and_then(|pods| pods.first()?.spec.as_ref()?.service_account_name.clone());
    let rights = rights(api, asked.plugin_namespace, account, &mut unread).await;
    let mut facts = Facts {
        now: Timestamp::now(),
        driver_name: asked.driver_name.to_owned(),
        plugin_namespace: asked.plugin_namespace.to_owned(),
        csi_driver: unread.optional(csi_driver),
        daemon_sets: unread.list(daemon_sets),
        rights,
        events: unread.optional(events.map(|_| Some(()))),
        failed_creates: unread.list(failed),
        nodes: by_node(nodes, &csi_nodes, &plugins),
        unread: unread.0,
    };
    hear(api, asked, &mut facts).await;
    Ok(facts)
}

fn by_node(
    nodes: Seen<Vec<Node>>,
    csi_nodes: &Seen<Vec<CSINode>>,
    plugins: &Seen<Vec<Pod>>,
) -> BTreeMap<String, NodeFacts> {
    let Seen::Is(nodes) = nodes else { return BTreeMap::new() };
    let csi_nodes = index(csi_nodes, |object| name(&object.metadata));
    // One that ends has nothing to say beside the one that follows it, so it is put first and written over.
    let plugins = plugins.and_then(|pods| {
        let mut pods = pods.clone();
        pods.sort_by_key(|pod| pod.metadata.deletion_timestamp.is_none());
        Seen::Is(pods)
    });
    let node_of = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let plugins = index(&plugins, node_of);
    let linux = nodes.into_iter().filter(is_linux);
    linux
        .map(|node| {
            let name = name(&node.metadata);
            let facts = NodeFacts {
                csi_node: found(&csi_nodes, &name),
                plugin: found(&plugins, &name),
                node,
                heard: Heard::Unasked,
            };
            (name, facts)
        })
        .collect()
}

fn index<T: Clone>(list: &Seen<Vec<T>>, key: impl Fn(&T) -> String) -> Seen<BTreeMap<String, T>> {
    list.and_then(|items| Seen::Is(items.iter().map(|item| (key(item), item.clone())).collect()))
}

fn found<T: Clone>(index: &Seen<BTreeMap<String, T>>, name: &str) -> Seen<T> {
    index.and_then(|items| items.get(name).cloned().map_or(Seen::Absent, Seen::Is))
}

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

/// The plugin runs on Linux nodes alone; a node that does not say what it is gets the benefit of the doubt.
fn is_linux(node: &Node) -> bool {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get("kubernetes.io/os"));
    label.is_none_or(|os| os == "linux")
}

/// Asks every plugin that runs. The order of the answers changes nothing.
async fn hear(api: &Api, asked: &Asked<'_>, facts: &mut Facts) {
    let plugins = facts.nodes.values().filter_map(|node| Plugin::of_object(node.plugin.is()?));
    let running: Vec<Plugin> = plugins.filter(|plugin| plugin.phase == "Running").collect();
    let questions = running.iter().map(|plugin| async move {
        let mut first = None;
        let keep = |report| {
            first.get_or_insert(report);
        };
        let heard = plugin.ask(api, asked.driver_name, Some(NO_COPY), asked.node_deadline, keep).await;
        let came = Timestamp::now();
        let report = |()| first.map_or(Heard::Unasked, |report| Heard::Report(Box::new(report), came));
        (plugin.node.clone(), heard.map(report))
    });
    let questions: Vec<_> = questions.collect();
    let answers: Vec<(String, Result<Heard, Unheard>)> =
        stream::iter(questions).buffer_unordered(NODES_AT_ONCE).collect().await;
    for (node, heard) in answers {
        let heard = match heard {
            Ok(heard) => heard,
            // The caller's own right, not the node's fault.
            Err(why @ Unheard::Forbidden { .. }) => {
                note(&mut facts.unread, why.to_string());
                Heard::Unasked
            }
            Err(why) => Heard::Silent { why: why.to_string(), is_late: matches!(why, Unheard::Late { .. }) },
        };
        if let Some(of_node) = facts.nodes.get_mut(&node) {
            of_node.heard = heard;
        }
    }
}

fn note(unread: &mut Vec<String>, why: String) {
    if !unread.contains(&why) {
        unread.push(why);
    }
}

/// Asks the API server what the plugin's service account may do: each right of deploy/base/rbac.yaml.
async fn rights(
    api: &Api,
    namespace: &str,
    account: Option<String>,
    unread: &mut Unread,
) -> Seen<Vec<Right>> {
    let account = account.unwrap_or_else(|| installation::SERVICE_ACCOUNT.to_owned());
    let wanted = installation::rights();
    let reviews = wanted.iter().map(|(verb, resource, name)| {
        let spec = SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{namespace}:{account}")),
            groups: Some(vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ]),
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.clone()),
                resource: Some(resource.clone()),
                name: name.clone(),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        };
        SubjectAccessReview { spec, ..SubjectAccessReview::default() }
    });
    let reviews: Vec<SubjectAccessReview> = reviews.collect();
    let asked = reviews.iter().map(|review| api.create(Resource::SUBJECT_ACCESS_REVIEWS, review));
    let answered: Result<Vec<SubjectAccessReview>, Failure> = join_all(asked).await.into_iter().collect();
    let judged = answered.map(|answers| {
        let granted =
            answers.iter().map(|answer| answer.status.as_ref().is_some_and(|status| status.allowed));
        wanted
            .iter()
            .zip(granted)
            .map(|((verb, resource, _), granted)| Right {
                verb: verb.clone(),
                resource: resource.clone(),
                granted,
            })
            .collect()
    });
    unread.list(judged)
}
