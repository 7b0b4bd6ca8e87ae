//! What a person asks of the serving process: that removals may go on (C22 (c) and (e), C26), and what becomes of kept copies
//! (C26).
//!
//! One line is asked, a few lines are answered, over a socket in the store that only root can open. Tools that
//! change something go this way, never to the store's files themselves (C40).

mod client;
mod server;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::domain::handle::Handle;
use crate::domain::use_cases::confirm::Seen;

pub use client::{AskError, ask};
pub use server::serve;

/// The socket's name in the store.
const SOCKET_NAME: &str = "console.sock";
/// The longest question that the serving process reads, in bytes.
const QUESTION_LENGTH_MAX: u64 = 4096;
/// The longest answer that is read, in bytes.
const ANSWER_LENGTH_MAX: u64 = 64 * 1024;

/// How the answer to [`Question::Show`] begins where something waits; what follows is why.
pub const WAITS: &str = "removals wait for a confirmation: ";
/// How the last line of that answer begins: what follows confirms what the answer says and nothing else.
pub const SEEN: &str = "confirmed as it is by: per-node confirm --seen=";

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// What waits?
    Show,
    /// Confirm what waits; where somebody has seen it, that and nothing else.
    Confirm(Option<Seen>),
    /// Restore the kept copy of this name: its entry's, or its handle.
    Restore(String),
    /// Delete the kept copies of these names now.
    Empty(Vec<String>),
    /// Delete every kept copy now.
    EmptyAll,
}

impl Question {
    fn line(&self) -> String {
        match self {
            Question::Show => "show".to_owned(),
            Question::Confirm(None) => "confirm".to_owned(),
            Question::Confirm(Some(seen)) => format!("confirm {seen}"),
            Question::Restore(word) => format!("restore {word}"),
            Question::Empty(words) => format!("empty {}", words.join(" ")),
            Question::EmptyAll => "empty-all".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Question> {
        // An entry's name is spelt as a handle could be; nothing else is let in.
        let word = |word: &str| Handle::parse(word).ok().map(|handle| handle.as_str().to_owned());
        match line.trim_end().split_once(' ') {
            None => match line.trim_end() {
                "show" => Some(Question::Show),
                "confirm" => Some(Question::Confirm(None)),
                "empty-all" => Some(Question::EmptyAll),
                _ => None,
            },
            Some(("restore", rest)) => word(rest).map(Question::Restore),
            Some(("empty", rest)) => rest.split(' ').map(word).collect::<Option<_>>().map(Question::Empty),
            Some(("confirm", rest)) => Seen::parse(rest).map(|seen| Question::Confirm(Some(seen))),
            Some(_) => None,
        }
    }
}

/// Where the socket of a store is.
pub fn socket_path(store: &Path) -> PathBuf {
    store.join(SOCKET_NAME)
}
