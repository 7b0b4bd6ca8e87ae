//! The tree of a node's copies, as a person would look at it: names, and what small text files say. It follows
//! no symlink and shows a bounded part.

use std::fs::{self, DirEntry, FileType};
use std::path::Path;

/// How deep the tree is shown, how many entries of one directory, and how much of a file.
const DEPTH_MAX: usize = 4;
const ENTRIES_MAX: usize = 20;
const QUOTED_BYTES_MAX: u64 = 60;

/// The lines below `root`; one that says so where it is empty.
pub fn tree(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    grow(root, "", DEPTH_MAX, &mut lines);
    if lines.is_empty() {
        lines.push("(empty)".to_owned());
    }
    lines
}

fn grow(directory: &Path, before: &str, depth: usize, lines: &mut Vec<String>) {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return lines.push(format!("{before}({error})")),
    };
    let mut entries: Vec<DirEntry> = entries.flatten().collect();
    entries.sort_by_key(DirEntry::file_name);
    let shown = entries.len().min(ENTRIES_MAX);
    for (number, entry) in entries.iter().take(shown).enumerate() {
        let is_last = number + 1 == entries.len();
        let (branch, trunk) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let kind = entry.file_type().ok();
        let name = entry.file_name().to_string_lossy().into_owned();
        lines.push(format!("{before}{branch}{name}{}", about(entry, kind)));
        if kind.is_some_and(|kind| kind.is_dir()) && depth > 1 {
            grow(&entry.path(), &format!("{before}{trunk}"), depth - 1, lines);
        }
    }
    if shown < entries.len() {
        lines.push(format!("{before}└─ … {} more", entries.len() - shown));
    }
}

/// What is worth saying of an entry behind its name.
fn about(entry: &DirEntry, kind: Option<FileType>) -> String {
    match kind {
        Some(kind) if kind.is_dir() => "/".to_owned(),
        Some(kind) if kind.is_symlink() => match fs::read_link(entry.path()) {
            Ok(leads_to) => format!(" -> {}", leads_to.display()),
            Err(_) => String::new(),
        },
        Some(kind) if kind.is_file() => match quoted(entry) {
            Some(text) => format!("   {text}"),
            None => String::new(),
        },
        Some(_) | None => String::new(),
    }
}

/// A short text, its lines one after the other.
fn quoted(entry: &DirEntry) -> Option<String> {
    let is_short = entry.metadata().is_ok_and(|metadata| (1..=QUOTED_BYTES_MAX).contains(&metadata.len()));
    let text = is_short.then(|| fs::read_to_string(entry.path()).ok()).flatten()?;
    let lines: Vec<&str> = text.lines().collect();
    Some(format!("\"{}\"", lines.join(" / ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_are_in_order_and_short_texts_are_quoted() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        assert_eq!(tree(root), ["(empty)"]);
        fs::create_dir_all(root.join("b/inner")).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/notes"), "one\ntwo\n").unwrap();
        fs::write(root.join("b/large"), "x".repeat(61)).unwrap();
        symlink("/", root.join("b/link")).unwrap();
        assert_eq!(
            tree(root),
            [
                "├─ a/",
                "│  └─ notes   \"one / two\"",
                "└─ b/",
                "   ├─ inner/",
                "   ├─ large",
                "   └─ link -> /",
            ]
        );
    }

    #[test]
    fn a_large_or_deep_tree_is_cut() {
        let scratch = tempfile::tempdir().unwrap();
        for number in 10..35 {
            fs::write(scratch.path().join(number.to_string()), "").unwrap();
        }
        let lines = tree(scratch.path());
        assert_eq!((lines.len(), lines.last().unwrap().as_str()), (21, "└─ … 5 more"));
        let deep = tempfile::tempdir().unwrap();
        fs::create_dir_all(deep.path().join("1/2/3/4/5/6")).unwrap();
        assert_eq!(tree(deep.path()).len(), 4);
    }
}
