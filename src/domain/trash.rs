//! Names in the trash: short numbers, never made from a handle (C3).

use std::fmt;

use serde::{Deserialize, Serialize};

/// An entry of the trash, a directory `trash/tNUMBER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrashId(pub u64);

impl TrashId {
    /// Reads a directory's name; `None` where it is no entry's.
    pub fn parse(name: &str) -> Option<TrashId> {
        let id = TrashId(name.strip_prefix('t')?.parse().ok()?);
        (id.to_string() == name).then_some(id)
    }
}

/// Which directory has a copy's name, for good: its inode, and when that was made, for inode numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyMark {
    pub inode: u64,
    /// Nanoseconds of the calendar; `None` where the file system does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_ns: Option<u64>,
}

impl fmt::Display for TrashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c03_a_trash_entry_has_one_spelling() {
        assert_eq!(TrashId::parse("t17"), Some(TrashId(17)));
        for name in ["", "t", "17", "t017", "t+1", "t-1", "t1.x", "n1", "t99999999999999999999"] {
            assert_eq!(TrashId::parse(name), None, "{name}");
        }
    }
}
