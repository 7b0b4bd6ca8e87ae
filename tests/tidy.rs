//! The rules of ARCHITECTURE.md that text can prove: who imports whom, where `unsafe` is, what opens files, that each file says
//! what it is, that each clause of the contract has a proof, and each line of the threat model.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files longer than this hold more than one idea.
const LINES_MAX: usize = 400;

/// Every clause of the contract.
fn clauses() -> impl Iterator<Item = u32> {
    (1..=7).chain(10..=27).chain(30..=33).chain(40..=49)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below `below`, with its path from the root and its text.
fn rust_files(below: &str) -> Vec<(PathBuf, String)> {
    files(below, "rs")
}

fn files(below: &str, wanted: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join(below)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("the directory can be listed") {
            let path = entry.expect("the entry can be read").path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && name != "target" && name != ".git" {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == wanted) {
                let text = fs::read_to_string(&path).expect("the file is UTF-8");
                found.push((path.strip_prefix(root()).expect("below the root").to_owned(), text));
            }
        }
    }
    assert!(!found.is_empty(), "no files below {below}");
    found.sort();
    found
}

/// The line without its comment; good enough for the words looked for here.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[track_caller]
fn assert_none(offences: Vec<String>, rule: &str) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

#[test]
fn adapters_do_not_import_one_another() {
    // Everyone's sockets are shared on purpose, and what compares pages with the code in unit tests.
    const SHARED: [&str; 2] = ["socket", "generated"];
    let mut offences = Vec::new();
    for (path, text) in rust_files("src/adapters") {
        let own = path.components().nth(2).expect("an adapter").as_os_str().to_string_lossy();
        let own = own.trim_end_matches(".rs").to_owned();
        for (number, line) in text.lines().enumerate() {
            for (at, word) in code(line).match_indices("crate::adapters::") {
                let other: String = code(line)[at + word.len()..]
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                if other != own && !SHARED.contains(&other.as_str()) {
                    offences.push(format!("{}:{}: {other}", path.display(), number + 1));
                }
            }
        }
    }
    assert_none(offences, "an adapter imports another");
}

#[test]
fn unsafe_is_in_one_file() {
    let one = Path::new("src/adapters/linux/syscalls.rs");
    let mut offences = Vec::new();
    for (path, text) in rust_files("src") {
        let has =
            |line: &&str| code(line).split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "unsafe");
        if path != one && text.lines().any(|line| has(&line)) {
            offences.push(path.display().to_string());
        }
    }
    assert_none(offences, "unsafe outside of src/adapters/linux/syscalls.rs");
}

/// The compiler's word for the same: denied in the crate, forbidden in every module but the one and those it is in.
#[test]
fn every_other_module_forbids_unsafe() {
    const DECLARING: [(&str, &[&str]); 3] = [
        ("src/lib.rs", &["adapters"]),
        ("src/adapters/mod.rs", &["linux"]),
        ("src/adapters/linux/mod.rs", &["syscalls"]),
    ];
    let text = |path: &str| fs::read_to_string(root().join(path)).expect("the file");
    let mut offences = Vec::new();
    for (path, above) in DECLARING {
        let text = text(path);
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let declared = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ");
            let Some(name) = declared.and_then(|rest| rest.strip_suffix(';')) else {
                continue;
            };
            let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
            let forbids = attributes.any(|line| *line == "#[forbid(unsafe_code)]");
            if forbids == above.contains(&name) {
                offences.push(format!("{path}: {name}"));
            }
        }
    }
    const ROOTS: [(&str, &str); 3] = [
        ("src/lib.rs", "#![deny(unsafe_code)]"),
        ("src/main.rs", "#![forbid(unsafe_code)]"),
        ("src/kubectl/main.rs", "#![forbid(unsafe_code)]"),
    ];
    for (path, line) in ROOTS {
        if !text(path).lines().any(|one| one == line) {
            offences.push(format!("{path}: no {line}"));
        }
    }
    assert_none(offences, "modules that do not forbid unsafe, or forbid it above the one that has it");
}

/// What is opened below a held directory goes through `open_below` or, for the walk, its flags: no symlink, not upwards.
#[test]
fn c18_nothing_in_the_store_is_opened_past_the_one_function() {
    // `openat2` itself: the function, the walk, the kubelet's directory, and the question whether there is such a call.
    const OWN: [&str; 4] = ["store.rs", "descent.rs", "target.rs", "self_check.rs"];
    let mut offences = Vec::new();
    for (path, text) in rust_files("src/adapters/linux") {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let production = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in production
            .lines()
            .enumerate()
            .filter(|(_, line)| !name.contains("_tests") && !code(line).is_empty())
        {
            let code = code(line);
            if code.contains("openat(") || code.contains("openat2(") && !OWN.contains(&name.as_str()) {
                offences.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert_none(offences, "an open that may follow a symlink");
}

/// A whole path is resolved at the start alone; what a request names goes from a held directory, a step at a time.
#[test]
fn c18_no_path_of_a_request_reaches_the_disk_unresolved() {
    // The flags' own paths, which are an operator's.
    const AT_THE_START: [&str; 3] = ["self_check.rs", "store.rs", "target.rs"];
    const BY_PATH: [&str; 12] = [
        "open(", "stat(", "lstat(", "statvfs(", "statfs(", "mkdir(", "unlink(", "rmdir(", "rename(",
        "chmod(", "chown(", "symlink(",
    ];
    let mut offences = Vec::new();
    for (path, text) in rust_files("src/adapters/linux") {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if AT_THE_START.contains(&name.as_str()) || name.ends_with("_tests.rs") {
            continue;
        }
        let production = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in production.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let by_path = code.contains("std::fs::") && !code.starts_with("use ")
                || BY_PATH.iter().any(|call| code.contains(&format!("rustix::fs::{call}")));
            if by_path && !line.contains("/proc/self/") && !code.contains("(MOUNTINFO)") {
                offences.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert_none(offences, "a path that is resolved outside of the start");
}

/// Each line of the threat model names its proof as `path::test`; a proof that is renamed or gone makes the line a claim.
#[test]
fn every_line_of_the_threat_model_names_a_test_that_is_there() {
    let model = fs::read_to_string(root().join("docs/threat-model.md")).expect("the threat model");
    let mut offences = Vec::new();
    let mut lines = 0;
    for (number, line) in model.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let Some(proofs) = line.trim_end_matches([' ', '|']).rsplit('|').next() else { continue };
        let header = proofs.trim() == "test" || proofs.trim().starts_with("---");
        let mut named = 0;
        for proof in proofs.split('`').skip(1).step_by(2) {
            named += 1;
            let Some((path, test)) = proof.split_once("::") else {
                offences.push(format!("line {}: {proof}", number + 1));
                continue;
            };
            let text = fs::read_to_string(root().join(path)).unwrap_or_default();
            // A test is a function, or a case by its name.
            if !text.contains(&format!("fn {test}(")) && !text.contains(&format!("\"{test}\"")) {
                offences.push(format!("line {}: {proof}", number + 1));
            }
        }
        lines += usize::from(!header);
        if named == 0 && !header {
            offences.push(format!("line {}: no test", number + 1));
        }
    }
    assert!(lines > 20, "the tables of the threat model are not where they were");
    assert_none(offences, "claims of docs/threat-model.md without a test");
}

#[test]
fn every_file_says_what_it_is_and_holds_one_idea() {
    let mut offences = Vec::new();
    for (path, text) in rust_files("src").into_iter().chain(rust_files("tests")) {
        if !text.starts_with("//!") {
            offences.push(format!("{}: no module documentation", path.display()));
        }
        let lines = text.lines().count();
        if lines > LINES_MAX {
            offences.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert_none(offences, "files");
}

#[test]
fn nothing_unfinished_is_left() {
    // The list of what is looked for, not an instance of it: this file is passed over below.
    let words = ["todo!(", "unimplemented!(", "dbg!(", concat!("FIX", "ME"), concat!("XX", "X")];
    let mut offences = Vec::new();
    for (path, text) in rust_files("src").into_iter().chain(rust_files("tests")) {
        if path == Path::new("tests/tidy.rs") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                offences.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert_none(offences, "unfinished");
}

#[test]
fn every_clause_has_a_test_that_carries_its_number() {
    let contract = fs::read_to_string(root().join("docs/contract.md")).expect("the contract");
    let mut proven = BTreeSet::new();
    for (_, text) in rust_files("src").into_iter().chain(rust_files("tests")) {
        for (at, _) in text.match_indices("c") {
            let digits: String = text[at + 1..].chars().take_while(char::is_ascii_digit).collect();
            let before = text[..at].chars().next_back().unwrap_or(' ');
            let after = text[at + 1 + digits.len()..].chars().next();
            let is_name = !before.is_alphanumeric() && after == Some('_');
            if is_name && let Ok(number) = digits.parse::<u32>() {
                proven.insert(number);
            }
        }
    }
    let mut offences = Vec::new();
    for clause in clauses() {
        if !contract.contains(&format!("**C{clause}**")) {
            offences.push(format!("C{clause} is not in docs/contract.md"));
        }
        if !proven.contains(&clause) {
            offences.push(format!("C{clause} has no test named c{clause:02}_…"));
        }
    }
    assert_none(offences, "clauses");
}

/// Each cause that `kubectl per-node why` knows is made in a real cluster, and waited for by its word. One that cannot be made
/// there would stand here with the reason; there is none.
#[test]
fn every_cause_of_why_has_a_case_on_the_real_cluster() {
    let table = fs::read_to_string(root().join("src/kubectl/why/causes.rs")).expect("the table of causes");
    let causes: Vec<&str> =
        table.split("Cause { id: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(causes.len() > 30, "the table of causes is not where it was");
    let cases: Vec<String> = rust_files("tests/cluster")
        .into_iter()
        .filter(|(_, text)| text.contains("wait_cause("))
        .map(|(_, text)| text.lines().map(code).collect::<Vec<_>>().join("\n"))
        .collect();
    let is_made = |cause: &&str| cases.iter().any(|text| text.contains(&format!("\"{cause}\"")));
    let missing = causes.into_iter().filter(|cause| !is_made(cause)).map(str::to_owned).collect();
    assert_none(missing, "causes without a case in tests/cluster");
}

/// Where the links of a Markdown text lead that stay in the tree.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    ends.filter(|link| !link.is_empty() && !link.contains("://"))
}

#[test]
fn every_link_leads_somewhere() {
    let mut offences = Vec::new();
    for (path, text) in files(".", "md") {
        let directory = root().join(&path);
        let directory = directory.parent().expect("a file is in a directory");
        let dead = links(&text).filter(|link| !directory.join(link).exists());
        offences.extend(dead.map(|link| format!("{}: {link}", path.display())));
    }
    assert_none(offences, "a link of the documentation leads nowhere");
}
