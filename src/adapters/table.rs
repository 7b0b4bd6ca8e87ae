//! A table as kubectl writes one: columns as wide as their widest cell, three spaces between, nothing behind the last. Colour is
//! for whoever asks for it, and never the only thing that says something.

/// Between two columns, as kubectl has it.
const GAP: usize = 3;

const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const RED: &str = "\u{1b}[31m";
const RESET: &str = "\u{1b}[0m";

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
        Tone::Good => Some(GREEN),
        Tone::Warning => Some(YELLOW),
        Tone::Fault => Some(RED),
    };
    match colour.filter(|_| coloured) {
        None => cell.text.clone(),
        Some(colour) => format!("{colour}{}{RESET}", cell.text),
    }
}

/// What a cluster says, as one line that moves no cursor.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
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
}
