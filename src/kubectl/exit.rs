//! The exit codes, the same for every command. docs/reference/exit-codes.md has the table; scripts rely on it, so a number never changes
//! its meaning.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked is done or shown.
    Complete,
    /// Nothing could be done or shown: standard error says why.
    Failed,
    /// The command line is wrong.
    Usage,
    /// What is shown is true and not all: standard error says what is missing.
    Partial,
    /// Something is wrong in the cluster, and the answer says what.
    Found,
    /// The change was not made because it could do harm, or because the person did not agree.
    Refused,
    /// Ended by an interrupt, as a shell reports it.
    Interrupted,
}

impl Exit {
    /// The number for the shell.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Partial => 3,
            Self::Found => 4,
            Self::Refused => 5,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
