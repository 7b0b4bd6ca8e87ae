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
        write!(f, "{} ", self.operation)?;
        // Names in a copy are a pod's: none may begin a line of the log, or speak to the terminal it is read on.
        for letter in self.path.display().to_string().chars() {
            if letter.is_control() {
                write!(f, "{}", letter.escape_default())?
            } else {
                write!(f, "{letter}")?
            }
        }
        if self.errno != 0 {
            write!(f, ": {}", std::io::Error::from_raw_os_error(self.errno))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c33_a_name_that_a_pod_made_stays_on_one_line() {
        let failure = Failure { operation: "unlink", path: "t1/a\nERROR \u{1b}[2Jb \u{e4}".into(), errno: 0 };
        assert_eq!(failure.to_string(), "unlink t1/a\\nERROR \\u{1b}[2Jb \u{e4}");
    }
}
