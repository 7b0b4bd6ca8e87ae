//! Every command that the documentation shows is run by CI, or says why it is not.
//!
//! A `sh` block has one of two marks on the line before it: `run by FILE`, where that file (which CI runs) has each of its lines, or
//! takes the whole block from the page; or `not run: WHY`.

use super::pages::{blocks_of, read, root};

/// What runs blocks as they stand in a page: it has the list of pages.
const GUIDES: &str = "tests/cluster/page/guides.rs";
/// A reason that says less than this says nothing.
const REASON_BYTES_MIN: usize = 20;

#[test]
fn every_command_is_run_by_ci_or_says_why_not() {
    let mut offences = Vec::new();
    let (mut run, mut not_run) = (0, 0);
    for (page, place, block) in blocks_of("sh") {
        let wrong = match (block.marked("run by "), block.marked("not run:")) {
            (Some(file), _) => {
                run += 1;
                who_runs(file, &page, &block.text)
            }
            (None, Some(why)) => {
                not_run += 1;
                (why.len() < REASON_BYTES_MIN && why != "as above")
                    .then(|| "the reason says nothing".to_owned())
            }
            (None, None) => {
                Some("neither `run by FILE` nor `not run: WHY` is on the line before it".to_owned())
            }
        };
        offences.extend(wrong.map(|wrong| format!("{place}: {wrong}")));
    }
    assert!(run > 8 && not_run > 8, "the marks are not where they were: {run} run, {not_run} not run");
    assert!(offences.is_empty(), "commands of the documentation:\n  {}", offences.join("\n  "));
}

/// What is wrong with `run by file`.
fn who_runs(file: &str, page: &str, block: &str) -> Option<String> {
    if file == GUIDES {
        let takes_it = read(GUIDES).contains(&format!("\"{page}\""));
        return (!takes_it).then(|| format!("{GUIDES} does not run {page}"));
    }
    if !root().join(file).is_file() {
        return Some(format!("there is no {file}"));
    }
    let script = read(file);
    let missing = block.lines().map(command).find(|line| !line.is_empty() && !script.contains(line))?;
    Some(format!("{file} has no `{missing}`"))
}

/// A line without its comment.
fn command(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

/// What is shown as commands is marked as such: a fence without a language would not be looked at.
#[test]
fn commands_are_in_sh_blocks() {
    let mut offences = Vec::new();
    for language in ["shell", "bash", "console", "zsh"] {
        offences.extend(blocks_of(language).into_iter().map(|(_, place, _)| format!("{place}: {language}")));
    }
    assert!(offences.is_empty(), "write `sh`:\n  {}", offences.join("\n  "));
}
