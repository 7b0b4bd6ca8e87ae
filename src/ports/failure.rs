//! A system call that failed, as port errors carry it.

use std::fmt;
use std::path::PathBuf;

/// What was tried on what, and the errno it ended with. Prints as one line without time or number of tries,
/// so that event messages stay the same from try to try (C33).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The system call or the step, a word of its manual page.
    pub operation: &'static str,
    pub path: PathBuf,
    /// The errno, as Linux numbers it; zero where the kernel gave none.
    pub errno: i32,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.path.display())?;
        if self.errno != 0 {
            write!(f, ": {}", std::io::Error::from_raw_os_error(self.errno))?;
        }
        Ok(())
    }
}
