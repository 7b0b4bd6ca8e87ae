//! The flags of a command line as Markdown, from clap's own description of it: what `--help` says, a table a command.

use clap::{Arg, Command};

use super::generated::{head, row};

/// Every command below `command`, in its order, each with its flags. `name` is how a person types the command.
pub fn tables(command: &Command, name: &str) -> String {
    let mut text = String::new();
    let own: Vec<&Arg> = command.get_arguments().filter(|argument| is_told(argument)).collect();
    if !own.is_empty() {
        text += &head(&["flag", "default", "environment", ""]);
        for argument in own {
            text += &row(&[&spelling(argument), &default(argument), &environment(argument), &help(argument)]);
        }
        text += "\n";
    }
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("{name} {}", sub.get_name());
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        text += &format!("### {name}\n\n{about}.\n\n{}", tables(sub, &name));
    }
    text
}

fn is_told(argument: &Arg) -> bool {
    !argument.is_hide_set() && argument.get_id() != "help" && argument.get_id() != "version"
}

/// `-o`, `--output` `FORMAT`; a word without a dash where the place tells what it is.
fn spelling(argument: &Arg) -> String {
    let value = argument.get_value_names().unwrap_or_default().join(" ");
    let Some(long) = argument.get_long() else { return format!("`{value}`") };
    let takes_value = argument.get_action().takes_values();
    let value = if takes_value { format!(" {value}") } else { String::new() };
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let aliases: String = argument
        .get_visible_aliases()
        .unwrap_or_default()
        .iter()
        .map(|alias| format!(", `--{alias}`"))
        .collect();
    format!("{short}`--{long}{value}`{aliases}")
}

fn default(argument: &Arg) -> String {
    let values: Vec<String> = argument
        .get_default_values()
        .iter()
        .filter(|value| argument.get_action().takes_values() && !value.is_empty())
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    values.join(" ")
}

fn environment(argument: &Arg) -> String {
    argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default()
}

/// The help, and the words that may be given where there are only some.
fn help(argument: &Arg) -> String {
    let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if words.is_empty() { text } else { format!("{text}: {}", words.join(", ")) }
}
