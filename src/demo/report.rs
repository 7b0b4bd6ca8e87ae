//! What the demonstration prints, and the count of what was not as promised.

use std::io::{self, Write};

use super::text::{COLUMNS_MAX, wrap};

/// What is before each line of a step.
pub const INDENT: usize = 3;
/// What is before a line that goes on with the one above it.
const FURTHER: usize = 6;

/// How wide a label is, and where the lines of a block begin.
const LABEL: usize = 18;
pub const BLOCK_INDENT: usize = INDENT + LABEL + 1;

/// The printed report.
pub struct Report {
    out: Box<dyn Write + Send>,
    steps: u32,
    broken: Vec<String>,
}

/// How the play ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub steps: u32,
    pub broken: Vec<String>,
}

impl Report {
    pub fn new(out: Box<dyn Write + Send>) -> Report {
        Report { out, steps: 0, broken: Vec::new() }
    }

    /// Where the terminal is gone (a closed pipe), the play goes on: its exit code still says how it went.
    fn line(&mut self, indent: usize, text: &str) {
        let printed: io::Result<()> = writeln!(self.out, "{}", format!("{:indent$}{text}", "").trim_end());
        drop(printed);
    }

    /// A line as it is, for what comes before and after the steps.
    pub fn plain(&mut self, text: &str) {
        self.line(0, text);
    }

    /// Begins the next step.
    pub fn step(&mut self, title: &str) {
        self.steps += 1;
        let title = format!("{}. {title}", self.steps);
        self.line(0, "");
        self.line(0, &title);
    }

    /// What a person wants to know beside what happens.
    pub fn note(&mut self, text: &str) {
        for line in wrap(text, COLUMNS_MAX - INDENT) {
            self.line(INDENT, &line);
        }
    }

    /// Who did what where, and what came of it.
    pub fn act(&mut self, node: &str, who: &str, what: &str, answer: &str) {
        self.line(INDENT, &format!("{node:<9} {who:<16} {what:<34} {answer}"));
    }

    /// What was said about the act above.
    pub fn saying(&mut self, text: &str) {
        for line in wrap(text, COLUMNS_MAX - FURTHER) {
            self.line(FURTHER, &line);
        }
    }

    /// A block of lines with a label before the first.
    pub fn block(&mut self, label: &str, lines: &[String]) {
        for (number, line) in lines.iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            self.line(INDENT, &format!("{label:<LABEL$} {line}"));
        }
    }

    /// Lines that keep their own columns.
    pub fn lines(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.line(INDENT, line));
    }

    /// Holds the play to a promise. Answers whether it was kept.
    pub fn promise(&mut self, kept: bool, promise: &str) -> bool {
        if !kept {
            self.line(INDENT, &format!("NOT AS PROMISED: {promise}"));
            self.broken.push(format!("step {}: {promise}", self.steps));
        }
        kept
    }

    pub fn outcome(&self) -> Outcome {
        Outcome { steps: self.steps, broken: self.broken.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_broken_promise_is_printed_and_counted_with_its_step() {
        let screen = Screen::default();
        let mut report = Report::new(Box::new(screen.clone()));
        report.step("First");
        report.promise(true, "all is well");
        report.step("Second");
        report.act("node-one", "example/web", "mount example-store", "OK");
        report.promise(false, "the copy is there");
        let outcome = report.outcome();
        assert_eq!((outcome.steps, outcome.broken), (2, vec!["step 2: the copy is there".to_owned()]));
        let text = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..4], ["", "1. First", "", "2. Second"]);
        assert_eq!(lines[4], "   node-one  example/web      mount example-store                OK");
        assert_eq!(lines[5], "   NOT AS PROMISED: the copy is there");
    }
}
