//! How answers are written: a table as kubectl's, or JSON and YAML for programs. Answers go to standard output, everything
//! else to standard error. Colour is for terminals alone, and not where `NO_COLOR` is set.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
pub use per_node::adapters::table::{Cell, Table, Tone, clean};
use serde::Serialize;

use crate::failure::Failure;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for a person.
    Table,
    /// More columns.
    Wide,
    /// The schema of docs/kubectl.md.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Writes an answer. A reader that goes away early (`| head`) has had enough; that is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Local { what: "standard output", why: error.to_string() })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a table, coloured where a person looks at it.
pub fn print_table(table: &Table) -> Result<(), Failure> {
    print(&table.render(colours()))
}

/// Writes an answer for a program; `Table` and `Wide` are not its formats and have been dealt with.
pub fn print_object(answer: &impl Serialize, format: Format) -> Result<(), Failure> {
    print(&object(answer, format)?)
}

fn object(answer: &impl Serialize, format: Format) -> Result<String, Failure> {
    let local = |why: String| Failure::Local { what: "the answer cannot be written", why };
    match format {
        Format::Yaml => serde_saphyr::to_string(answer).map_err(|error| local(error.to_string())),
        Format::Json | Format::Table | Format::Wide => {
            let mut text = serde_json::to_string_pretty(answer).map_err(|error| local(error.to_string()))?;
            text.push('\n');
            Ok(text)
        }
    }
}

/// A line on standard error.
pub fn say(line: &str) {
    // Nobody is left to be told where this fails.
    let _ = writeln!(io::stderr().lock(), "kubectl per-node: {}", clean(line));
}

/// Whether standard output is a terminal that is to have colours: not with `NO_COLOR`, not where `TERM` is dumb.
pub fn colours() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_say_the_same() {
        let answer = serde_json::json!({ "kind": "Example", "items": [1, "two"] });
        let yaml = object(&answer, Format::Yaml).expect("YAML");
        let back: serde_json::Value = serde_saphyr::from_str(&yaml).expect("YAML");
        assert_eq!(back, answer);
        let json = object(&answer, Format::Json).expect("JSON");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).expect("JSON"), answer);
    }
}
