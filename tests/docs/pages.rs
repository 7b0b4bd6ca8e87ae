//! The pages of the documentation, and their blocks.

use std::path::{Path, PathBuf};

use super::markdown::{Block, blocks};

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every page that a person reads, by its path from the root: docs/, and what lies beside it.
pub fn pages() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for page in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        found.push((page.to_owned(), read(page)));
    }
    for below in ["docs", "deploy", "tests"] {
        collect(Path::new(below), &mut found);
    }
    found.sort();
    assert!(found.len() > 30, "the documentation is not where it was");
    found
}

fn collect(below: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(root().join(below)).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        let within = below.join(name);
        if path.is_dir() && name != "target" {
            collect(&within, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let within = within.to_str().expect("a path of text");
            found.push((within.to_owned(), read(within)));
        }
    }
}

/// Every block of a language, with its place as `page:line`.
pub fn blocks_of(language: &str) -> Vec<(String, String, Block)> {
    let mut found = Vec::new();
    for (page, text) in pages() {
        for block in blocks(&text).into_iter().filter(|block| block.language == language) {
            found.push((page.clone(), format!("{page}:{}", block.line), block));
        }
    }
    found
}
