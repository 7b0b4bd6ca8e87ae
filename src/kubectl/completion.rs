//! Completion of commands, flags and the values that a flag takes, in two ways: as a script that a shell sources for
//! `kubectl-per_node`, and for `kubectl per-node` as kubectl asks for it. It asks no cluster, so it completes no names of objects.
//!
//! kubectl asks an executable of the name [`COMPLETER`] with the words that are typed, the last one to be completed, and reads
//! a candidate a line, with a description after a tab, and then a directive. That executable is this one by a second name.

use std::ffi::OsStr;
use std::path::Path;

use clap::builder::{PossibleValue, StyledStr, ValueHint};
use clap::{Arg, Command, CommandFactory};

use crate::cli::{CommandLine, CompletionFlags};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// The name by which kubectl asks for the completion of `kubectl per-node`.
const COMPLETER: &str = "kubectl_complete-per_node";

/// What the shell does beside the candidates, by the number that cobra has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    /// File names, where no candidate fits.
    Files = 0,
    /// Nothing.
    NoFiles = 4,
}

/// One word that fits, and what it means.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    word: String,
    means: String,
}

/// Prints the script.
pub fn run(flags: &CompletionFlags) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut CommandLine::command(), "kubectl-per_node", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Complete)
}

/// Whether this process was started by the name under which kubectl looks for completion.
pub fn is_asked_for(name: Option<&OsStr>) -> bool {
    name.and_then(|name| Path::new(name).file_name()).is_some_and(|name| name == COMPLETER)
}

/// Answers kubectl.
pub fn answer(words: &[String]) -> Result<Exit, Failure> {
    let (candidates, directive) = complete(words);
    let mut text = String::new();
    for Candidate { word, means } in candidates {
        text.push_str(&format!("{word}\t{means}\n"));
    }
    output::print(&format!("{text}:{}\n", directive as u8))?;
    Ok(Exit::Complete)
}

/// What the last of the words may become.
fn complete(words: &[String]) -> (Vec<Candidate>, Directive) {
    let mut root = CommandLine::command();
    // Only now each command has the flags that all have.
    root.build();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let (mut command, mut awaits, mut positionals) = (&root, None, 0);
    for word in before {
        if awaits.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            awaits = flag(command, word).filter(|flag| takes_value(flag) && !word.contains('='));
        } else if let Some(below) = command.find_subcommand(word) {
            (command, positionals) = (below, 0);
        } else {
            positionals += 1;
        }
    }
    let (mut candidates, directive) = match (awaits, last.split_once('=')) {
        (Some(flag), _) => values(flag, ""),
        (None, Some((name, _))) if name.starts_with("--") => match flag(command, name) {
            Some(flag) => values(flag, &format!("{name}=")),
            None => (Vec::new(), Directive::NoFiles),
        },
        (None, _) if last.starts_with('-') => (flags(command), Directive::NoFiles),
        (None, _) => here(command, positionals),
    };
    candidates.retain(|candidate| candidate.word.starts_with(last));
    (candidates, directive)
}

/// Commands below this one, or the values of its next argument.
fn here(command: &Command, positionals: usize) -> (Vec<Candidate>, Directive) {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let mut candidates: Vec<_> = below.map(|below| candidate(below.get_name(), below.get_about())).collect();
    let Some(argument) = command.get_positionals().nth(positionals) else {
        return (candidates, Directive::NoFiles);
    };
    let (values, directive) = values(argument, "");
    candidates.extend(values);
    (candidates, directive)
}

fn values(of: &Arg, prefix: &str) -> (Vec<Candidate>, Directive) {
    let all = of.get_possible_values().into_iter().filter(|value: &PossibleValue| !value.is_hide_set());
    let candidates =
        all.map(|value| candidate(&format!("{prefix}{}", value.get_name()), value.get_help())).collect();
    let takes_path = matches!(of.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath);
    (candidates, if takes_path { Directive::Files } else { Directive::NoFiles })
}

fn flags(command: &Command) -> Vec<Candidate> {
    let all = command.get_arguments().filter(|flag| !flag.is_hide_set());
    all.filter_map(|flag| Some(candidate(&format!("--{}", flag.get_long()?), flag.get_help()))).collect()
}

/// The flag that a word names: `--name`, `--name=value`, `-n` or `-nVALUE`.
fn flag<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or_default();
    let mut all = command.get_arguments();
    match name.strip_prefix("--") {
        Some(long) => {
            all.find(|flag| flag.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long)))
        }
        None => all.find(|flag| flag.get_short().is_some() && flag.get_short() == name.chars().nth(1)),
    }
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}

/// A description has one line: the next one would be a candidate.
fn candidate(word: &str, help: Option<&StyledStr>) -> Candidate {
    let means = help.map(ToString::to_string).unwrap_or_default();
    let means = means.lines().next().unwrap_or_default().replace('\t', " ");
    Candidate { word: word.to_owned(), means }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn words(typed: &[&str]) -> (Vec<String>, Directive) {
        let typed: Vec<String> = typed.iter().map(|&word| word.to_owned()).collect();
        let (candidates, directive) = complete(&typed);
        (candidates.into_iter().map(|candidate| candidate.word).collect(), directive)
    }

    #[test]
    fn commands_and_their_own_commands_are_completed() {
        assert_eq!(words(&["wh"]), (vec!["why".into()], Directive::NoFiles));
        assert_eq!(words(&["trash", ""]).0, ["ls", "restore", "empty"]);
        let (all, _) = words(&[""]);
        let known: Vec<_> =
            CommandLine::command().get_subcommands().map(|one| one.get_name().to_owned()).collect();
        assert_eq!(all, known);
        assert_eq!(words(&[]).0, known);
        assert_eq!(words(&["nonsense", "--also", "st"]).0, ["status"]);
    }

    #[test]
    fn flags_are_completed_those_of_all_commands_too() {
        assert_eq!(words(&["status", "--wa"]).0, ["--watch", "--watch-every"]);
        assert_eq!(words(&["trash", "restore", "x", "--kube"]).0, ["--kubeconfig"]);
        assert_eq!(words(&["status", "--none"]).0, [""; 0]);
    }

    #[test]
    fn the_values_of_a_flag_are_completed_however_it_is_written() {
        let formats = ["table", "wide", "json", "yaml"];
        assert_eq!(words(&["status", "-o", ""]).0, formats);
        assert_eq!(words(&["status", "--output", "j"]).0, ["json"]);
        assert_eq!(words(&["status", "--output=y"]).0, ["--output=yaml"]);
        assert_eq!(words(&["completion", "ba"]).0, ["bash"]);
        // A value that is free is no command, and one that is typed is not taken for one.
        assert_eq!(words(&["status", "-n", ""]).0, [""; 0]);
        assert_eq!(words(&["--driver-name", "trash", "--context", "why", "st"]).0, ["status"]);
    }

    #[test]
    fn file_names_are_the_shells_where_a_flag_takes_one_and_nowhere_else() {
        assert_eq!(words(&["status", "--kubeconfig", ""]), (vec![], Directive::Files));
        assert_eq!(words(&["status", "--kubeconfig=/etc/"]), (vec![], Directive::Files));
        assert_eq!(words(&["status", ""]), (vec![], Directive::NoFiles));
    }

    #[test]
    fn every_candidate_has_one_line_that_says_what_it_means() {
        for typed in [vec![String::new()], vec!["status".into(), "--".into()]] {
            for Candidate { word, means } in complete(&typed).0 {
                assert!(!means.is_empty() && !means.contains(['\n', '\t']), "{word}: {means:?}");
            }
        }
    }

    #[test]
    fn it_answers_kubectl_by_its_second_name_alone() {
        assert!(is_asked_for(Some(OsStr::new("/usr/local/bin/kubectl_complete-per_node"))));
        assert!(!is_asked_for(Some(OsStr::new("kubectl-per_node"))) && !is_asked_for(None));
    }
}
