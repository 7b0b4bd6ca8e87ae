//! Every command that the documentation shows is run by CI, or says why it is not.
//!
//! A `sh` block has one of two marks on the line before it: `run by FILE`, where that file takes the block from the page and runs
//! it, or is `.ci/run` and has each of its lines; or `not run: WHY`.

use super::pages::{blocks_of, read};

/// What runs blocks as they stand in a page: it has the list of pages.
const GUIDES: &str = "tests/cluster/page/guides.rs";
/// What runs every suite, as commands of its own.
const CI: &str = ".ci/run";
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
    match file {
        GUIDES => {
            (!read(GUIDES).contains(&format!("\"{page}\""))).then(|| format!("{GUIDES} does not run {page}"))
        }
        CI => {
            let script = read(CI);
            let missing =
                block.lines().map(command).find(|line| !line.is_empty() && !script.contains(line))?;
            Some(format!("{CI} has no `{missing}`"))
        }
        other => Some(format!("nobody takes commands from a page in {other}")),
    }
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
