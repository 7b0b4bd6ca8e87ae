//! docs/reference is what the code says: flags, exit codes, rights. (Events, metrics and the flags of `kubectl per-node` are
//! compared beside the code that has them: see `reference` among the unit tests.)

use clap::CommandFactory as _;
use per_node::adapters::cli::CommandLine;

use super::flags_table::tables;
use super::generated::{agree, head, row};
use super::pages::{pages, read, root};

#[test]
fn the_flags_are_those_of_the_binary() {
    agree("flags.md", "per-node", &tables(&CommandLine::command(), "per-node"));
}

/// Each rule of the role, with the comment that stands above it in the manifest.
#[test]
fn c32_the_rights_are_those_of_the_role() {
    let manifest = read("deploy/base/rbac.yaml");
    let mut made = head(&["verbs", "resource", "for"]);
    let mut why = String::new();
    let mut rules = 0;
    for rule in manifest.split("  - apiGroups:").skip(1) {
        let field = |name: &str| {
            let line = rule.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_default();
            line.trim().trim_matches(['[', ']']).to_owned()
        };
        why = if why.is_empty() { comment_before(&manifest, rule) } else { why };
        let names = field("resourceNames:");
        let only = if names.is_empty() { String::new() } else { format!(", only `{names}`") };
        let verbs: Vec<String> = field("verbs:").split(", ").map(|verb| format!("`{verb}`")).collect();
        made += &row(&[&verbs.join(", "), &format!("`{}`{only}", field("resources:")), &why]);
        why.clear();
        rules += 1;
    }
    assert_eq!(rules, manifest.matches("verbs:").count());
    agree("rbac.md", "rbac", &made);
}

/// The comment lines right above a rule.
fn comment_before(manifest: &str, rule: &str) -> String {
    let above = &manifest[..manifest.find(rule).expect("a part of it")];
    let lines: Vec<&str> =
        above.lines().rev().skip(1).take_while(|line| line.trim().starts_with('#')).collect();
    lines.iter().rev().map(|line| line.trim().trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ")
}

/// The sentence that the binary's own documentation has, and no number besides.
#[test]
fn the_exit_codes_are_those_of_the_binaries() {
    let main = read("src/main.rs");
    let sentence =
        main.lines().find_map(|line| line.strip_prefix("//! Exit codes: ")).expect("the exit codes");
    let mut made = head(&["code", ""]);
    for code in sentence.trim_end_matches('.').split(", ") {
        let (number, meaning) = code.split_once(' ').expect("a number and what it means");
        made += &row(&[number, meaning]);
    }
    assert!(main.contains("const USAGE: u8 = 2;"), "2 is the command line's");
    agree("exit-codes.md", "per-node", &made);

    let exit = read("src/kubectl/exit.rs");
    let mut made = head(&["code", ""]);
    let mut meaning = String::new();
    for line in exit.lines().skip_while(|line| !line.starts_with("pub enum Exit")) {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("/// ") {
            meaning = text.trim_end_matches('.').to_owned();
        } else if let Some(variant) =
            line.strip_suffix(',').filter(|word| word.chars().all(char::is_alphanumeric))
        {
            let number = exit
                .split_once(&format!("Self::{variant} => "))
                .and_then(|(_, rest)| rest.split([',', '\n']).next())
                .unwrap_or_else(|| panic!("{variant} has no number"));
            made += &row(&[number, &meaning]);
        } else if line == "}" {
            break;
        }
    }
    agree("exit-codes.md", "kubectl per-node", &made);
}

/// Every page of docs/ is reached from its index, directly or by the README of its own directory.
#[test]
fn every_page_is_in_the_index() {
    let index = read("docs/README.md");
    for (page, _) in pages() {
        let Some(page) = page.strip_prefix("docs/").filter(|page| *page != "README.md") else { continue };
        let by_directory = page.rsplit_once('/').is_some_and(|(directory, name)| {
            let readme = root().join("docs").join(directory).join("README.md");
            std::fs::read_to_string(readme).is_ok_and(|text| text.contains(&format!("]({name})")))
        });
        assert!(index.contains(&format!("]({page})")) || by_directory, "docs/{page} is in no index");
    }
}

/// A metric that was renamed is renamed in every page.
#[test]
fn every_metric_that_a_page_names_is_in_the_reference() {
    let reference = read("docs/reference/metrics.md");
    let mut offences = Vec::new();
    let mut named = 0;
    for (page, text) in pages() {
        for (at, _) in text.match_indices("`per_node_") {
            let name: String =
                text[at + 1..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            named += 1;
            if !reference.contains(&format!("| `{name}` |")) {
                offences.push(format!("{page}: {name}"));
            }
        }
    }
    assert!(named > 30, "{named} names");
    assert!(offences.is_empty(), "metrics that are not there:\n  {}", offences.join("\n  "));
}
