//! docs/runbooks: one page for each alert, in one shape, so that a tired person finds everything where it always is.

use std::collections::BTreeSet;
use std::fs;

use super::rules::{alerts, names};
use super::{in_tree, text};

/// The parts of a page, in their order. The first paragraph, under the title, says what the alert means.
const PARTS: [&str; 4] = ["## What is at risk", "## What to look at", "## What to do", "## When to stop"];
const DIRECTORY: &str = "docs/runbooks";

fn pages() -> BTreeSet<String> {
    let entries = fs::read_dir(in_tree(DIRECTORY)).expect("the runbooks");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    names
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .filter(|name| name != "README")
        .collect()
}

#[test]
fn every_alert_has_its_runbook_and_every_runbook_its_alert() {
    assert_eq!(pages(), names());
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("a name");
        assert_eq!(alert["annotations"]["runbook_url"], format!("{DIRECTORY}/{name}.md").as_str());
    }
}

#[test]
fn every_runbook_has_all_its_parts_and_none_is_empty() {
    for name in pages() {
        let page = text(&format!("{DIRECTORY}/{name}.md"));
        let mut rest =
            page.strip_prefix(&format!("# {name}\n")).unwrap_or_else(|| panic!("{name}: its title"));
        for part in PARTS {
            let (before, after) = rest.split_once(part).unwrap_or_else(|| panic!("{name}: no {part}"));
            assert!(before.trim().len() > 20, "{name}: nothing before {part}");
            rest = after;
        }
        assert!(rest.trim().len() > 20, "{name}: nothing under the last heading");
        let (look, _) = page.split_once(PARTS[2]).expect("found above");
        assert!(look.contains("\n```sh\n"), "{name}: no command to look with");
    }
}

#[test]
fn the_index_has_every_runbook() {
    let index = text(&format!("{DIRECTORY}/README.md"));
    for name in pages() {
        assert!(index.contains(&format!("[{name}]({name}.md)")), "{name}");
    }
}
