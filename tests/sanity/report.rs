//! What csi-sanity reports, from the JSON that its test framework writes.

use std::path::Path;

use serde::Deserialize;

/// The specs under Identity Service and Node Service.
#[derive(Debug, Default)]
pub struct Report {
    pub passed: Vec<String>,
    /// With the reason.
    pub skipped: Vec<(String, String)>,
    /// With what was not as expected.
    pub failed: Vec<(String, String)>,
    /// What csi-sanity and the driver printed.
    pub transcript: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Vec<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    failure: Failure,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Failure {
    message: String,
}

impl Report {
    /// Reads the report at `path`.
    pub fn read(path: &Path, transcript: String) -> Report {
        let Ok(text) = std::fs::read_to_string(path) else {
            panic!("csi-sanity wrote no report: {transcript}");
        };
        let suites: Vec<Suite> = serde_json::from_str(&text).expect("a report that can be read");
        let mut report = Report { transcript, ..Report::default() };
        for spec in suites.into_iter().flat_map(|suite| suite.spec_reports) {
            let containers = spec.container_hierarchy_texts.unwrap_or_default();
            let name = format!("{} {}", containers.join(" "), spec.leaf_node_text);
            let ours = name.contains("Identity Service") || name.contains("Node Service");
            let why = spec.failure.message;
            match spec.state.as_str() {
                "passed" if ours && spec.leaf_node_type == "It" => report.passed.push(name),
                "passed" => {}
                // Of another service: filtered out, or written by the suite's authors to wait.
                "skipped" | "pending" if !ours && why.is_empty() => {}
                "skipped" => report.skipped.push((name, why)),
                state => report.failed.push((name, format!("{state}: {why}"))),
            }
        }
        report
    }
}
