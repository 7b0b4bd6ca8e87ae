//! ARCHITECTURE.md names what there is: no path that is gone, and every module of the first level.

use super::pages::{pages, read, root};

/// Directories whose paths are written out in the documentation.
const ROOTS: [&str; 9] =
    ["src/", "tests/", "docs/", "deploy/", "benches/", "proto/", "tools/", ".ci/", "examples/"];

/// Every `path` in backticks that begins like one of the repository's.
fn named_paths(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| ROOTS.iter().any(|root| span.starts_with(root)));
    // A command begins with its path; a test is named after `::`; `*` stands for many.
    paths
        .map(|span| {
            span.split([' ', ':', '*', '…', '{', '\n'])
                .next()
                .unwrap_or_default()
                .trim_end_matches('/')
                .to_owned()
        })
        .collect()
}

#[test]
fn every_path_that_the_documentation_names_is_there() {
    let mut offences = Vec::new();
    let mut named = 0;
    for (page, text) in pages() {
        if page == "CHANGELOG.md" {
            continue;
        }
        for path in named_paths(&text) {
            named += 1;
            if !root().join(&path).exists() {
                offences.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(named > 100, "{named} paths");
    assert!(offences.is_empty(), "paths that are not there:\n  {}", offences.join("\n  "));
}

/// What lies directly in src/, src/adapters and tests/ stands in ARCHITECTURE.md by its name.
#[test]
fn every_module_of_the_first_level_is_in_the_architecture() {
    let architecture = read("ARCHITECTURE.md");
    let words: Vec<&str> = architecture
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .filter(|word| !word.is_empty())
        .collect();
    let mut offences = Vec::new();
    for below in ["src", "src/adapters", "tests", "benches"] {
        for entry in std::fs::read_dir(root().join(below)).expect("a directory") {
            let entry = entry.expect("an entry").file_name();
            let name = entry.to_string_lossy();
            let name = name.trim_end_matches(".rs");
            if !matches!(name, "mod" | "lib") && !words.contains(&name) {
                offences.push(format!("{below}/{name}"));
            }
        }
    }
    assert!(offences.is_empty(), "modules that ARCHITECTURE.md does not name:\n  {}", offences.join("\n  "));
}
