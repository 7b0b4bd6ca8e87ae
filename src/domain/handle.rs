//! The volume handle: which strings are one, and which rule a string that is none breaks (C3).
//!
//! A `Handle` names a directory directly under `copies/`, so nothing that could leave it may become one.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest handle, in bytes. A file name may have 255, so a handle with a suffix need not fit: names
/// that the driver derives are short ids instead.
pub const HANDLE_LENGTH_MAX: usize = 253;

/// A valid volume handle: a DNS-1123 subdomain of at most [`HANDLE_LENGTH_MAX`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Handle(String);

/// The rule that a string breaks which is no handle. The texts become event messages (C33): they are short,
/// say what to do, and repeat no more of the handle than the part at fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandleError {
    #[error(
        "the volume handle is empty: set spec.csi.volumeHandle, by convention to the PersistentVolume's name"
    )]
    Empty,
    #[error("the volume handle has {length} bytes: use at most {HANDLE_LENGTH_MAX}")]
    TooLong { length: usize },
    #[error(
        "the volume handle has the character {character:?}: use only lower-case letters, digits, '-' and '.'"
    )]
    Character { character: char },
    #[error("the volume handle has an empty segment: put a letter or digit before and after each '.'")]
    EmptySegment,
    #[error(
        "a segment of the volume handle starts or ends with '-': let it start and end with a letter or digit"
    )]
    SegmentEdge,
}

impl Handle {
    /// Checks `raw` against every rule of C3, in the order length, characters, segments.
    pub fn parse(raw: &str) -> Result<Handle, HandleError> {
        if raw.is_empty() {
            return Err(HandleError::Empty);
        }
        if raw.len() > HANDLE_LENGTH_MAX {
            return Err(HandleError::TooLong { length: raw.len() });
        }
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if let Some(character) = raw.chars().find(|&c| !allowed(c)) {
            return Err(HandleError::Character { character });
        }
        for segment in raw.split('.') {
            if segment.is_empty() {
                return Err(HandleError::EmptySegment);
            }
            if segment.starts_with('-') || segment.ends_with('-') {
                return Err(HandleError::SegmentEdge);
            }
        }
        Ok(Handle(raw.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The handle as the one path component it is.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Handle {
    type Error = HandleError;

    fn try_from(raw: String) -> Result<Handle, HandleError> {
        Handle::parse(&raw)
    }
}

impl From<Handle> for String {
    fn from(handle: Handle) -> String {
        handle.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(raw: &str, expect: Result<(), HandleError>) {
        assert_eq!(Handle::parse(raw).map(|_| ()), expect, "{raw:?}");
    }

    #[test]
    fn c03_a_handle_reads_as_it_was_written() {
        assert_eq!(Handle::parse("a-b.0").map(|handle| handle.to_string()), Ok("a-b.0".to_owned()));
    }

    #[test]
    fn c03_valid_handles_are_taken() {
        for raw in ["a", "0", "a-b", "a.b", "example-store", "1.2.3", "a--b", "x.y-z.0"] {
            check(raw, Ok(()));
        }
        check(&"a".repeat(253), Ok(()));
    }

    #[test]
    fn c03_each_broken_rule_is_named() {
        check("", Err(HandleError::Empty));
        check(&"a".repeat(254), Err(HandleError::TooLong { length: 254 }));
        for (raw, character) in
            [("A", 'A'), ("a/b", '/'), ("a b", ' '), ("a_b", '_'), ("a\0b", '\0'), ("a\nb", '\n'), ("ä", 'ä')]
        {
            check(raw, Err(HandleError::Character { character }));
        }
        for raw in [".", "..", "a..b", ".a", "a."] {
            check(raw, Err(HandleError::EmptySegment));
        }
        for raw in ["-", "-a", "a-", "a.-b", "a-.b"] {
            check(raw, Err(HandleError::SegmentEdge));
        }
    }

    proptest! {
        #[test]
        fn c03_no_string_that_could_leave_the_store_is_a_handle(raw in ".*") {
            if let Ok(handle) = Handle::parse(&raw) {
                let mut components = handle.as_path().components();
                prop_assert!(matches!(components.next(), Some(std::path::Component::Normal(_))));
                prop_assert!(components.next().is_none());
                prop_assert!(handle.as_str().len() <= HANDLE_LENGTH_MAX);
            }
        }

        #[test]
        fn c03_every_subdomain_is_a_handle(raw in "[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?){0,5}") {
            prop_assert!(Handle::parse(&raw).is_ok());
        }
    }
}
