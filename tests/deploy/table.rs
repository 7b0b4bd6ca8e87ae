//! The table of values in the chart's README is what values.yaml says: each value, its default and the comment above it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::tool::chart;

/// Values that hold others, each with a comment of its own.
const GROUPS: [&str; 8] =
    ["image", "serve", "csiDriver", "openshift", "podMonitor", "prometheusRule", "dashboard", "test"];

/// Between these lines of the README.
const BEGIN: &str = "<!-- values: written by PER_NODE_DOCS=write cargo test --test deploy table -->\n";
const END: &str = "<!-- values end -->\n";

/// Each value's path and the comment above it, by the lines of the file: a comment, then `name: default`, nested by two spaces.
/// A name without a comment is a group, whose values have theirs, or belongs to the default of the value before it.
fn comments(text: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let (mut group, mut comment) = (String::new(), String::new());
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(said) = trimmed.strip_prefix('#') {
            comment = format!("{comment} {}", said.trim()).trim().to_owned();
            continue;
        }
        let is_nested = line.starts_with("  ");
        let name = trimmed.split(':').next().unwrap_or_default();
        if comment.is_empty() {
            if !is_nested {
                name.clone_into(&mut group);
            }
            continue;
        }
        if !trimmed.is_empty() {
            let path = if is_nested { format!("{group}.{name}") } else { name.to_owned() };
            rows.push((path, comment.clone()));
        }
        comment.clear();
    }
    rows
}

/// values.yaml, and as it is read.
fn values() -> (String, Value) {
    let text = std::fs::read_to_string(chart().join("values.yaml")).expect("values.yaml");
    let read = serde_saphyr::from_str(&text).expect("YAML");
    (text, read)
}

/// The names of an object, but for what helm gives every chart that is part of another.
fn names(object: &Value) -> BTreeSet<String> {
    let names = object.as_object().expect("an object").keys().cloned();
    names.filter(|name| name != "global").collect()
}

fn table() -> String {
    let (text, read) = values();
    let mut table = "| value | default | |\n|---|---|---|\n".to_owned();
    for (path, what) in comments(&text) {
        let default = &read.pointer(&format!("/{}", path.replace('.', "/"))).expect("the value");
        writeln!(table, "| `{path}` | `{default}` | {} |", what.replace('|', "\\|")).expect("a string");
    }
    table
}

#[test]
fn every_value_has_a_comment() {
    let (text, read) = values();
    let commented: BTreeSet<String> = comments(&text).into_iter().map(|(path, _)| path).collect();
    let mut expected = BTreeSet::new();
    for name in names(&read) {
        if GROUPS.contains(&name.as_str()) {
            expected.extend(names(&read[&name]).into_iter().map(|value| format!("{name}.{value}")));
        } else {
            expected.insert(name);
        }
    }
    assert_eq!(commented, expected);
}

#[test]
fn the_table_of_values_says_what_the_file_says() {
    let path = chart().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("the table begins");
    let (there, after) = rest.split_once(END).expect("the table ends");
    if std::env::var("PER_NODE_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).expect("written");
        return;
    }
    assert_eq!(there, table(), "write it anew: PER_NODE_DOCS=write cargo test --test deploy table");
}

#[test]
fn each_value_of_the_file_is_in_the_schema_and_each_of_the_schema_in_the_file() {
    let schema = std::fs::read_to_string(chart().join("values.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let (_, read) = values();
    assert_eq!(names(&read), names(&schema["properties"]));
    assert_eq!(schema["additionalProperties"], false);
    for group in GROUPS {
        let of_schema = &schema["properties"][group];
        assert_eq!(of_schema["additionalProperties"], false, "{group}");
        assert_eq!(names(&read[group]), names(&of_schema["properties"]), "{group}");
    }
}
