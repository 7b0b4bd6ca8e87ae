//! What a command asked for and may not have got. A right that is missing, or a call that fails, is a fact beside the others: the
//! rest goes on, and the person is told what was not seen.

use crate::failure::Failure;

/// One thing that was asked for.
#[derive(Debug, Clone, Default)]
pub enum Seen<T> {
    Is(T),
    /// The API server says that there is none.
    Absent,
    /// It could not be read; the facts' list of what is unread says why.
    Unread,
    /// Nothing called for it.
    #[default]
    Unasked,
}

impl<T> Seen<T> {
    pub fn is(&self) -> Option<&T> {
        match self {
            Seen::Is(seen) => Some(seen),
            Seen::Absent | Seen::Unread | Seen::Unasked => None,
        }
    }

    /// What becomes of the thing, where it was seen.
    pub fn and_then<U>(&self, then: impl FnOnce(&T) -> Seen<U>) -> Seen<U> {
        match self {
            Seen::Is(seen) => then(seen),
            Seen::Absent => Seen::Absent,
            Seen::Unread => Seen::Unread,
            Seen::Unasked => Seen::Unasked,
        }
    }

    pub fn is_absent(&self) -> bool {
        match self {
            Seen::Absent => true,
            Seen::Is(_) | Seen::Unread | Seen::Unasked => false,
        }
    }
}

/// What could not be read, while the rest is.
#[derive(Debug, Default)]
pub struct Unread(pub Vec<String>);

impl Unread {
    pub fn optional<T>(&mut self, read: Result<Option<T>, Failure>) -> Seen<T> {
        match read {
            Ok(Some(found)) => Seen::Is(found),
            Ok(None) => Seen::Absent,
            Err(failure) => self.note(&failure.to_string()),
        }
    }

    pub fn list<T>(&mut self, read: Result<Vec<T>, Failure>) -> Seen<Vec<T>> {
        self.optional(read.map(Some))
    }

    pub fn note<T>(&mut self, why: &str) -> Seen<T> {
        if !self.0.iter().any(|said| said == why) {
            self.0.push(why.to_owned());
        }
        Seen::Unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_cannot_be_read_is_said_once() {
        let mut unread = Unread::default();
        let forbidden = || Failure::Forbidden { verb: "get", resource: "nodes", namespace: None };
        assert!(!unread.optional::<()>(Err(forbidden())).is_absent());
        assert!(unread.list::<()>(Err(forbidden())).is().is_none());
        assert_eq!(unread.0.len(), 1);
        assert!(unread.optional::<()>(Ok(None)).is_absent() && unread.list(Ok(vec![1])).is().is_some());
    }
}
