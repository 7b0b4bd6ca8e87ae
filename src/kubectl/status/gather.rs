//! Asks the API server for the objects and every node for its report, some nodes at a time, and says on a terminal how far it
//! is. What one of them does not tell is missing from the answer and named there; the rest is shown.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use indicatif::{ProgressBar, ProgressStyle};

use super::answer::{ClusterStatus, Gathering};
use super::volumes::{self, Volume};
use crate::api::Api;
use crate::failure::Failure;
use crate::plugins;

/// What is asked, and how.
#[derive(Debug, Clone)]
pub struct Question {
    pub driver_name: String,
    /// Where the plugins' pods are.
    pub namespace: String,
    /// Only this volume.
    pub volume: Option<String>,
    pub node_deadline: Duration,
    /// How many nodes are asked at a time.
    pub parallel: usize,
    /// Whether a terminal is shown how far it is.
    pub has_progress: bool,
}

/// One look.
///
/// # Errors
/// Where neither the volumes nor the plugins could be read, or nothing has the name that was asked for.
pub async fn gather(api: &Api, question: &Question) -> Result<ClusterStatus, Failure> {
    let mut gathering = Gathering::default();
    let listed = volumes::list(api, &question.driver_name).await;
    let plugins = plugins::list(api, &question.namespace).await;
    let (volumes, plugins) = match (listed, plugins) {
        (Err(failure), Err(_)) => return Err(failure),
        (Ok(volumes), Ok(plugins)) => (Some(volumes), plugins),
        (Ok(volumes), Err(failure)) => {
            gathering.lacks(failure.to_string());
            (Some(volumes), Vec::new())
        }
        (Err(failure), Ok(plugins)) => {
            gathering.lacks(failure.to_string());
            (None, plugins)
        }
    };
    if plugins.is_empty() {
        gathering
            .lacks(format!("no plugin's pod in the namespace {} (-n names another)", question.namespace));
    }
    match plugins::nodes_without(api, plugins.iter().map(|plugin| plugin.node.as_str())).await {
        Ok(None) => {}
        Ok(Some(without)) if !plugins.is_empty() => gathering.lacks(without),
        // What was just said of the namespace.
        Ok(Some(_)) => {}
        Err(failure) => gathering.lacks(failure.to_string()),
    }
    let only =
        question.volume.as_deref().map(|asked| handles_of(asked, volumes.as_deref().unwrap_or_default()));
    if let Some(mut volumes) = volumes {
        volumes.retain(|volume| only.as_ref().is_none_or(|only| only.contains(&volume.handle)));
        let claims = match volumes::claims(api, &volumes).await {
            Ok(claims) => Some(claims),
            Err(failure) => {
                gathering.lacks(failure.to_string());
                None
            }
        };
        gathering.volumes(volumes, claims.as_ref());
    }
    gathering.keep_only(only.clone());
    // A node is asked for one handle alone where one is wanted: it need not tell the rest.
    let handle = only.as_ref().filter(|only| only.len() == 1).and_then(|only| only.first());
    let progress = progress(plugins.len(), question);
    let mut told = stream::iter(&plugins)
        .map(async |plugin| {
            let mut pages = Vec::new();
            let (driver_name, deadline) = (&question.driver_name, question.node_deadline);
            let keep = |page| pages.push(page);
            let asked = plugin.ask(api, driver_name, handle.map(String::as_str), deadline, keep);
            let problem = asked.await.err().map(|problem| problem.to_string());
            (plugin, pages, problem)
        })
        .buffer_unordered(question.parallel);
    while let Some((plugin, pages, problem)) = told.next().await {
        gathering.node(plugin, pages, problem);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(gathering.answer())
}

/// The handles that `asked` stands for: those of PersistentVolumes of that name, and the one it is itself.
fn handles_of(asked: &str, volumes: &[Volume]) -> BTreeSet<String> {
    let named = volumes.iter().filter(|volume| volume.name == asked).map(|volume| volume.handle.clone());
    let mut handles: BTreeSet<String> = named.collect();
    if handles.is_empty() {
        handles.insert(asked.to_owned());
    }
    handles
}

/// A bar for a person, where not all nodes are asked at once: those answer before anybody could read it.
fn progress(nodes: usize, question: &Question) -> ProgressBar {
    if !question.has_progress || nodes <= question.parallel || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("asking nodes {bar:30} {pos}/{len}");
    ProgressBar::new(nodes as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
