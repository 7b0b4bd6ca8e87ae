//! The kinds of calls to the API server, and how each end is counted: "a counter says why" (C22).
//!
//! Kinds and classes are both closed sets of words, so the table of counts is bounded.

use crate::domain::tally::Tally;

use super::api_error::ApiError;

/// A good end.
const OK: &str = "ok";

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// The full list that begins a watch.
    WatchList,
    /// One stream of the watch, or a try to open it.
    Watch,
    /// The read of one object that fixes a revision.
    Head,
    /// The full list that proves an absence.
    ProofList,
    /// The read of the namespace that identifies the cluster.
    Namespace,
    /// POST of an event.
    EventCreate,
    /// PATCH of an event.
    EventPatch,
}

impl Call {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::WatchList,
        Self::Watch,
        Self::Head,
        Self::ProofList,
        Self::Namespace,
        Self::EventCreate,
        Self::EventPatch,
    ];

    /// The word for a metric's label.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::WatchList => "watch_list",
            Self::Watch => "watch",
            Self::Head => "head",
            Self::ProofList => "proof_list",
            Self::Namespace => "namespace",
            Self::EventCreate => "event_create",
            Self::EventPatch => "event_patch",
        }
    }

    /// Counts one call of this kind; `None` is a good end.
    pub fn count(self, tally: &Tally, error: Option<&ApiError>) {
        tally.api_called(self.word(), error.map_or(OK, ApiError::class));
    }

    /// Has the good ends of every kind counted from zero.
    pub fn count_from_zero(tally: &Tally) {
        for call in Self::ALL {
            tally.api_can_be_called(call.word(), OK);
        }
    }
}
