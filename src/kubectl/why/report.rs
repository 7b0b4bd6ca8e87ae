//! What `why` says: for a person as numbered findings, for a program as one object.

use serde::Serialize;

use super::causes::{explain, runs};
use super::facts::Facts;
use super::finding::{Certainty, Finding};
use crate::output::clean;

/// The answer for programs; docs/kubectl.md describes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    api_version: &'static str,
    kind: &'static str,
    pod: PodSummary,
    /// It runs and is ready, or has ended well.
    runs: bool,
    /// Somebody has deleted it, and it is still there.
    #[serde(skip)]
    is_terminating: bool,
    /// The surest first.
    findings: Vec<Finding>,
    /// What could not be read, each with why.
    unread: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PodSummary {
    namespace: String,
    name: String,
    uid: Option<String>,
    phase: String,
    node: Option<String>,
    /// Its claims that have a volume of the driver, or wait for one.
    volumes: Vec<String>,
}

impl Report {
    pub fn of(facts: &Facts) -> Self {
        let pod = PodSummary {
            namespace: facts.namespace().to_owned(),
            name: facts.pod_name().to_owned(),
            uid: facts.pod.metadata.uid.clone(),
            phase: facts.phase().to_owned(),
            node: facts.place.as_ref().map(|place| place.name.clone()),
            volumes: facts.volumes().map(|(claim, _)| claim.name.clone()).collect(),
        };
        Self {
            api_version: per_node::proto::report::API_VERSION,
            kind: "Why",
            pod,
            runs: runs(facts),
            is_terminating: facts.is_terminating(),
            findings: explain(facts),
            unread: facts.unread.clone(),
        }
    }

    /// Whether anything was found that keeps the pod from running.
    pub fn has_reasons(&self) -> bool {
        self.findings.iter().any(|finding| finding.certainty != Certainty::Note)
    }

    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// The answer for a person.
    pub fn text(&self) -> String {
        let PodSummary { namespace, name, phase, node, volumes, .. } = &self.pod;
        let place =
            node.as_ref().map_or_else(|| "on no node".to_owned(), |node| format!("on the node {node}"));
        let state = match (self.runs, self.is_terminating) {
            (true, _) if self.has_reasons() => "it runs",
            (true, _) => "it does what it is for",
            (false, true) => "it is being deleted",
            (false, false) => "it does not run",
        };
        let mut text = format!("pod {namespace}/{name}: {phase}, {place}: {state}.\n");
        if volumes.is_empty() {
            text += "None of its claims has a volume of this driver yet.\n";
        }
        if !self.has_reasons() {
            text += "Nothing wrong that I can see";
            text += if self.unread.is_empty() { ".\n" } else { ", and I could not see everything.\n" };
        }
        for (number, finding) in self.findings.iter().enumerate() {
            text += &format!("\n{}. {} ({})\n", number + 1, finding.sentence, finding.certainty.word());
            for line in &finding.evidence {
                text += &format!("   - {line}\n");
            }
            text += &format!("   do: {}\n", finding.remedy);
        }
        // What a cluster says is shown and moves no cursor.
        text.lines().map(|line| clean(line) + "\n").collect()
    }
}
