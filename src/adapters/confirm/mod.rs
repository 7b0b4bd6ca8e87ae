//! `per-node confirm`: a person tells the serving process that removals may go on (C22 (c) and (e)).
//!
//! One line is asked, one line is answered, over a socket in the store that only root can open. Tools that
//! change something go this way, never to the store's files themselves (C40).

mod client;
mod server;

use std::path::{Path, PathBuf};

pub use client::{AskError, ask};
pub use server::serve;

/// The socket's name in the store.
const SOCKET_NAME: &str = "confirm.sock";
/// The longest line that either side reads, in bytes.
const LINE_LENGTH_MAX: u64 = 4096;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// What waits?
    Show,
    /// Confirm what waits.
    Confirm,
}

impl Question {
    fn word(self) -> &'static str {
        match self {
            Question::Show => "show",
            Question::Confirm => "confirm",
        }
    }

    fn parse(line: &str) -> Option<Question> {
        [Question::Show, Question::Confirm].into_iter().find(|question| question.word() == line.trim_end())
    }
}

/// Where the socket of a store is.
pub fn socket_path(store: &Path) -> PathBuf {
    store.join(SOCKET_NAME)
}
