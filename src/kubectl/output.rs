//! How answers are written: a table as kubectl's, or JSON and YAML for programs. Answers go to standard output, everything
//! else to standard error. Colour is for terminals alone, and not where `NO_COLOR` is set.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// Between two columns, as kubectl has it.
const GAP: usize = 3;

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

/// What a cell means, for whom colour helps. The text always says it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Fault,
}

/// One cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: clean(&text.into()), tone }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

/// Rows below a head. An empty cell is written as kubectl does: not at all.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|word| Cell::from(*word)).collect()] }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The whole table. `coloured` adds the escapes that a terminal shows as colour.
    pub fn render(&self, coloured: bool) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut pending = 0;
            for (cell, width) in row.iter().zip(&widths) {
                if !cell.text.is_empty() {
                    text.extend(std::iter::repeat_n(' ', pending));
                    pending = 0;
                    text.push_str(&painted(cell, coloured));
                }
                pending += width - cell.width() + GAP;
            }
            text.push('\n');
        }
        text
    }
}

fn painted(cell: &Cell, coloured: bool) -> String {
    let colour = match cell.tone {
        Tone::Plain => None,
        Tone::Good => Some(AnsiColor::Green),
        Tone::Warning => Some(AnsiColor::Yellow),
        Tone::Fault => Some(AnsiColor::Red),
    };
    match colour.filter(|_| coloured) {
        None => cell.text.clone(),
        Some(colour) => {
            let style = Style::new().fg_color(Some(colour.into()));
            format!("{style}{}{style:#}", cell.text)
        }
    }
}

/// What a cluster says, as one line that moves no cursor.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
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
    fn columns_are_as_wide_as_their_widest_cell_and_lines_have_no_tail() {
        let mut table = Table::new(&["VOLUME", "NODE", "BYTES"]);
        table.row(vec!["a-long-name".into(), "n1".into(), "".into()]);
        table.row(vec!["".into(), "n2".into(), "1".into()]);
        assert_eq!(
            table.render(false),
            "VOLUME        NODE   BYTES\na-long-name   n1\n              n2     1\n"
        );
    }

    #[test]
    fn colour_adds_escapes_and_changes_no_width() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![Cell::toned("bad", Tone::Fault), "x".into()]);
        assert_eq!(table.render(true), "A     B\n\u{1b}[31mbad\u{1b}[0m   x\n");
    }

    #[test]
    fn c47_what_a_cluster_says_moves_no_cursor() {
        let mut table = Table::new(&["A"]);
        table.row(vec!["\u{1b}[2Jgone\n".into()]);
        assert_eq!(table.render(true), "A\n\u{fffd}[2Jgone\u{fffd}\n");
    }

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
