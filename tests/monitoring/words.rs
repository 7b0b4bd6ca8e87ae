//! The metrics that a text names, and those of the reference, which is made from the code.

use std::collections::BTreeSet;

use super::text;

/// The driver's own metrics, and the one that every process has, in a query or any other text. What a record is called is none.
pub fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c: char| !is_of_name(c));
    let is_metric = |word: &&str| {
        !word.contains(':') && (word.starts_with("per_node_") || *word == "process_start_time_seconds")
    };
    words.filter(is_metric).map(str::to_owned).collect()
}

/// The metrics of the reference.
pub fn metrics_of_the_reference() -> BTreeSet<String> {
    let reference = text("docs/reference/metrics.md");
    let rows = reference.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|line| metrics_in(line.split(" | ").next().unwrap_or_default())).collect()
}
