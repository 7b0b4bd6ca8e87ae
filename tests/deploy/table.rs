//! The table of values in the chart's README is what values.yaml says: each value, its default and the comment above it.

use std::fmt::Write as _;

use super::tool::chart;

/// Between these lines of the README.
const BEGIN: &str = "<!-- values: written by PER_NODE_WRITE=1 cargo test --test deploy table -->\n";
const END: &str = "<!-- values end -->\n";

/// One value: its path, its default as YAML on one line, and what it is.
struct Row {
    path: String,
    default: String,
    what: String,
}

/// Reads values.yaml by its lines: a comment, then `name: default`, nested by two spaces. A default that goes over lines is
/// joined. Panics where a value has no comment.
fn rows(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut above, mut comment) = (Vec::<(usize, String)>::new(), String::new());
    for line in text.lines() {
        let trimmed = line.trim_start();
        let depth = line.len() - trimmed.len();
        if trimmed.is_empty() {
            comment.clear();
        } else if let Some(said) = trimmed.strip_prefix('#') {
            comment = format!("{comment} {}", said.trim()).trim().to_owned();
        } else if comment.is_empty() && depth > 0 {
            // Another line of the default of the value before it.
            let last = rows.last_mut().expect("a value");
            let item = trimmed.strip_prefix("- ").map_or_else(|| trimmed.to_owned(), |item| format!("[{{{item}}}]"));
            let joined = format!("{} {item}", last.default);
            joined.trim().clone_into(&mut last.default);
        } else {
            let (name, default) = trimmed.split_once(':').expect("a name and a default");
            above.retain(|(at, _)| *at < depth);
            let path = above.iter().map(|(_, name)| format!("{name}.")).collect::<String>() + name;
            above.push((depth, name.to_owned()));
            // A group: what is in it has comments of its own.
            if comment.is_empty() {
                assert!(default.trim().is_empty(), "{path} has no comment");
                continue;
            }
            rows.push(Row { path, default: default.trim().to_owned(), what: std::mem::take(&mut comment) });
        }
    }
    rows
}

fn table() -> String {
    let text = std::fs::read_to_string(chart().join("values.yaml")).expect("values.yaml");
    // The comment at the top is of the file.
    let text = text.split_once("\n\n").expect("a comment at the top").1;
    let mut table = "| value | default | |\n|---|---|---|\n".to_owned();
    for Row { path, default, what } in rows(text) {
        writeln!(table, "| `{path}` | `{default}` | {} |", what.replace('|', "\\|")).expect("a string");
    }
    table
}

#[test]
fn the_table_of_values_says_what_the_file_says() {
    let path = chart().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("the table begins");
    let (there, after) = rest.split_once(END).expect("the table ends");
    if std::env::var_os("PER_NODE_WRITE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).expect("written");
        return;
    }
    assert_eq!(there, table(), "write it anew: PER_NODE_WRITE=1 cargo test --test deploy table");
}

#[test]
fn each_value_of_the_file_is_in_the_schema_and_each_of_the_schema_in_the_file() {
    let read = |name: &str| std::fs::read_to_string(chart().join(name)).expect("a file");
    let values: serde_json::Value = serde_saphyr::from_str(&read("values.yaml")).expect("YAML");
    let schema: serde_json::Value = serde_json::from_str(&read("values.schema.json")).expect("JSON");
    let names = |object: &serde_json::Value| {
        let mut names: Vec<String> = object.as_object().expect("an object").keys().cloned().collect();
        // What helm gives every chart that is part of another.
        names.retain(|name| name != "global");
        names.sort();
        names
    };
    assert_eq!(names(&values), names(&schema["properties"]));
    for group in ["image", "serve", "csiDriver", "openshift", "test"] {
        let of_schema = &schema["properties"][group];
        assert_eq!(of_schema["additionalProperties"], false, "{group}");
        assert_eq!(names(&values[group]), names(&of_schema["properties"]), "{group}");
    }
    assert_eq!(schema["additionalProperties"], false);
}
