//! How calls to the API server ended, for metrics: "a counter says why" (C22).
//!
//! The kinds of calls and the classes of ends are both closed sets of words, so the table is bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::api_error::ApiError;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// The full list that begins a watch.
    WatchList,
    /// One stream of the watch, or a try to open it.
    Watch,
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
    /// The word for a metric's label.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::WatchList => "watch_list",
            Self::Watch => "watch",
            Self::ProofList => "proof_list",
            Self::Namespace => "namespace",
            Self::EventCreate => "event_create",
            Self::EventPatch => "event_patch",
        }
    }
}

/// Counts ends by call and class.
#[derive(Debug, Default)]
pub struct Counters {
    counts: Mutex<BTreeMap<(Call, &'static str), u64>>,
}

impl Counters {
    /// Counts one end; `None` is a good one.
    pub fn count(&self, call: Call, error: Option<&ApiError>) {
        let class = error.map_or("ok", ApiError::class);
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry((call, class)).or_default() += 1;
    }

    /// All counts so far: call, class, number.
    #[must_use]
    pub fn read(&self) -> Vec<(Call, &'static str, u64)> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((call, class), count)| (*call, *class, *count)).collect()
    }
}
