//! The parts of docs/ that are made from the code: each is compared with what the code says now, and written anew where
//! `PER_NODE_DOCS=write` asks for it. Nothing outside of the two lines around a part is read or changed.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The line after a generated part.
const END: &str = "<!-- end of what is generated -->";

/// Two parts of one page may be written at once by tests of one process.
static WRITING: Mutex<()> = Mutex::new(());

/// Compares the part `name` of docs/reference/`page` with what was `made`, or writes it.
#[track_caller]
pub fn agree(page: &str, name: &str, made: &str) {
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(page);
    let text = std::fs::read_to_string(&path).expect("the page");
    let begin = format!("<!-- generated: {name} -->\n");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page} has no line {begin}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{page}: {name} has no end"));
    let whole = format!("{before}{begin}\n{}\n\n{END}{after}", made.trim());
    if std::env::var("PER_NODE_DOCS").is_ok_and(|value| value == "write") {
        std::fs::write(&path, whole).expect("the page can be written");
    } else {
        assert_eq!(
            text, whole,
            "docs/reference/{page}: {name} is not what the code says; PER_NODE_DOCS=write writes it"
        );
    }
}

/// A line of a Markdown table.
pub fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// On one line, without what would end the cell, or begin markup outside of code.
fn escaped(cell: &str) -> String {
    let line = cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let spans = line.split('`').enumerate();
    let spans = spans.map(|(at, span)| if at % 2 == 0 { span.replace('<', "\\<") } else { span.to_owned() });
    spans.collect::<Vec<_>>().join("`")
}

/// The first two lines of one.
pub fn head(cells: &[&str]) -> String {
    format!("{}|{}\n", row(cells), "---|".repeat(cells.len()))
}
