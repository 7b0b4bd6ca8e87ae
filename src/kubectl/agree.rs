//! The question before a change. Without a terminal nobody can answer, so a script says `--yes`.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::Failure;
use crate::output;

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    Given,
    Refused,
}

/// Asks on standard error, unless `yes` has answered already. Everything but `y` and `yes` is a no.
pub fn agree(question: &str, yes: bool) -> Result<Agreement, Failure> {
    if yes {
        return Ok(Agreement::Given);
    }
    if !io::stdin().is_terminal() {
        output::say("nothing was changed: there is no terminal to ask on; give --yes");
        return Ok(Agreement::Refused);
    }
    let local = |error: io::Error| Failure::Local { what: "the terminal", why: error.to_string() };
    let mut terminal = io::stderr().lock();
    write!(terminal, "{question} [y/N] ").and_then(|()| terminal.flush()).map_err(local)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(local)?;
    Ok(if is_yes(&answer) { Agreement::Given } else { Agreement::Refused })
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_one() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        assert!(!is_yes("\n") && !is_yes("") && !is_yes("n\n") && !is_yes("yesterday\n"));
    }
}
