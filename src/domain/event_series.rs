//! Event series: one event for a refusal that repeats, with a count that goes on (C31–C33).
//!
//! The book is pure: it is told of refusals and of what became of a post, and says what to post next. It
//! holds a bounded number of series and never waits.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher13};

use super::pod::Subject;
use super::refusal::Reason;
use super::time::{Monotonic, Wall};

/// The longest message of an event, in bytes; longer ones are cut.
pub const MESSAGE_LENGTH_MAX: usize = 1024;
/// How many series are kept at once.
pub const SERIES_MAX: usize = 256;
/// The first wait after a post that failed, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// What makes two refusals one series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeriesKey {
    #[serde(flatten)]
    pub subject: Subject,
    pub reason: Reason,
    pub message: String,
}

/// The name of an Event object: the subject's name and a hash of everything that makes the series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventName(String);

/// A series as it stands: what the Event object is to say, and how much of it was posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    pub name: EventName,
    pub key: SeriesKey,
    pub first: Wall,
    pub last: Wall,
    pub count: u32,
    /// The count that the API server has; zero where it has no such event.
    pub posted: u32,
}

/// What to do next with a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Post {
    Create(Series),
    Patch(Series),
}

/// What became of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostOutcome {
    Taken,
    /// A create met an event of that name.
    AlreadyThere,
    /// A patch met none.
    Gone,
    /// The namespace or the API server will never take it.
    Ended,
    /// Come again, with this or any other series not sooner than after this time.
    Retry {
        after: Option<Duration>,
    },
}

/// What a refusal did to the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Counted,
    /// The book is full of series that were never posted whole: this one is lost, and counted as a drop.
    Dropped,
}

/// All series that are going on or not yet posted.
#[derive(Debug)]
pub struct SeriesBook {
    window: Duration,
    series: BTreeMap<EventName, Entry>,
    /// Nothing is posted sooner: the server has asked for that, whichever series it was told of.
    held_until: Monotonic,
}

#[derive(Debug)]
struct Entry {
    series: Series,
    /// Not in the store as it is now.
    unsaved: bool,
    /// Next post patches though nothing is posted, or creates though something was.
    patch_next: bool,
    failures: u32,
    not_before: Monotonic,
}

impl SeriesKey {
    /// The key of a refusal, its message cut to [`MESSAGE_LENGTH_MAX`].
    pub fn new(subject: impl Into<Subject>, reason: Reason, mut message: String) -> SeriesKey {
        message.truncate(cut(&message, MESSAGE_LENGTH_MAX).len());
        SeriesKey { subject: subject.into(), reason, message }
    }
}

/// The text as far as it has at most `length_max` bytes, cut between two characters.
pub(super) fn cut(text: &str, length_max: usize) -> &str {
    let end = text.len().min(length_max);
    let at = (0..=end).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..at]
}

impl EventName {
    /// A name that any process gives the same series: `SUBJECT.HASH`, a valid object name of at most 253 bytes.
    fn of(key: &SeriesKey, first: Wall) -> EventName {
        const SUBJECT_PART_LENGTH_MAX: usize = 200;
        let mut hasher = SipHasher13::new();
        for part in [key.subject.uid(), key.reason.as_str(), &key.message] {
            hasher.write(part.as_bytes());
            hasher.write_u8(0xff);
        }
        hasher.write_u64(first.unix_ms);
        let hash = hasher.finish128();
        let subject: String = key.subject.name().chars().take(SUBJECT_PART_LENGTH_MAX).collect();
        let subject = subject.trim_end_matches(['.', '-']);
        EventName(format!("{subject}.{:016x}", hash.h1 ^ hash.h2.rotate_left(32)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SeriesBook {
    /// A book that goes on with what the store kept. `window` is C31's ten minutes.
    pub fn new(window: Duration, kept: impl IntoIterator<Item = Series>) -> SeriesBook {
        let entry = |series: Series| Entry {
            patch_next: series.posted > 0,
            series,
            unsaved: false,
            failures: 0,
            not_before: Monotonic::default(),
        };
        let series = kept.into_iter().take(SERIES_MAX).map(|s| (s.name.clone(), entry(s))).collect();
        SeriesBook { window, series, held_until: Monotonic::default() }
    }

    /// A refusal happened: it raises the count of the series that is going on, or begins one.
    pub fn record(&mut self, key: SeriesKey, now: Wall) -> Recorded {
        let window = self.window;
        let going_on = self
            .series
            .values_mut()
            .filter(|entry| entry.series.key == key)
            .max_by_key(|entry| entry.series.last)
            .filter(|entry| now.since(entry.series.last) <= window);
        if let Some(entry) = going_on {
            entry.series.count = entry.series.count.saturating_add(1);
            entry.series.last = entry.series.last.max(now);
            entry.unsaved = true;
            return Recorded::Counted;
        }
        if self.series.len() >= SERIES_MAX && !self.make_room() {
            return Recorded::Dropped;
        }
        let name = EventName::of(&key, now);
        let series = Series { name: name.clone(), key, first: now, last: now, count: 1, posted: 0 };
        let not_before = Monotonic::default();
        self.series.insert(name, Entry { series, unsaved: true, patch_next: false, failures: 0, not_before });
        Recorded::Counted
    }

    /// Drops the series that was posted whole and is oldest. A series that still has to be posted stays.
    fn make_room(&mut self) -> bool {
        let oldest = self
            .series
            .values()
            .filter(|entry| entry.series.posted == entry.series.count)
            .min_by_key(|entry| entry.series.last)
            .map(|entry| entry.series.name.clone());
        oldest.is_some_and(|name| self.series.remove(&name).is_some())
    }

    /// Series that changed since they were last handed out here, to be written to the store.
    pub fn take_unsaved(&mut self) -> Vec<Series> {
        let unsaved = self.series.values_mut().filter(|entry| entry.unsaved);
        unsaved
            .map(|entry| {
                entry.unsaved = false;
                entry.series.clone()
            })
            .collect()
    }

    /// The series, if it changed since it was last handed out.
    pub fn take_unsaved_of(&mut self, name: &EventName) -> Option<Series> {
        let entry = self.series.get_mut(name).filter(|entry| entry.unsaved)?;
        entry.unsaved = false;
        Some(entry.series.clone())
    }

    /// Whether any series is to be written.
    pub fn has_unsaved(&self) -> bool {
        self.series.values().any(|entry| entry.unsaved)
    }

    /// Marks a series as not written after all.
    pub fn keep_unsaved(&mut self, name: &EventName) {
        if let Some(entry) = self.series.get_mut(name) {
            entry.unsaved = true;
        }
    }

    /// The post that is due longest, if one is due.
    pub fn next_post(&self, now: Monotonic) -> Option<Post> {
        if now < self.held_until {
            return None;
        }
        let due = self
            .series
            .values()
            .filter(|entry| entry.series.posted < entry.series.count && entry.not_before <= now)
            .min_by_key(|entry| (entry.not_before, entry.series.last))?;
        let series = due.series.clone();
        Some(if due.patch_next { Post::Patch(series) } else { Post::Create(series) })
    }

    /// When a post is due that is not due now.
    pub fn next_due(&self) -> Option<Monotonic> {
        let open = self.series.values().filter(|entry| entry.series.posted < entry.series.count);
        open.map(|entry| entry.not_before.max(self.held_until)).min()
    }

    /// Takes in what became of a post. Answers false where the series is at its end and has been dropped.
    pub fn settle(&mut self, posted: &Series, outcome: PostOutcome, now: Monotonic) -> bool {
        let Some(entry) = self.series.get_mut(&posted.name) else { return false };
        match outcome {
            PostOutcome::Taken => {
                entry.series.posted = posted.count;
                entry.patch_next = true;
                entry.failures = 0;
                entry.unsaved = true;
            }
            PostOutcome::AlreadyThere => entry.patch_next = true,
            PostOutcome::Gone => entry.patch_next = false,
            PostOutcome::Ended => {
                self.series.remove(&posted.name);
                return false;
            }
            PostOutcome::Retry { after } => {
                let backoff = BACKOFF_FIRST.saturating_mul(1 << entry.failures.min(6)).min(BACKOFF_MAX);
                entry.failures = entry.failures.saturating_add(1);
                entry.not_before = now.after(backoff);
                self.held_until = self.held_until.max(now.after(after.unwrap_or_default().min(BACKOFF_MAX)));
            }
        }
        true
    }

    /// Drops series that are past the window and posted whole; answers their names.
    pub fn expire(&mut self, now: Wall) -> Vec<EventName> {
        let window = self.window;
        let over = |entry: &Entry| {
            entry.series.posted == entry.series.count && now.since(entry.series.last) > window
        };
        let names: Vec<EventName> =
            self.series.iter().filter(|(_, entry)| over(entry)).map(|(name, _)| name.clone()).collect();
        for name in &names {
            self.series.remove(name);
        }
        names
    }

    /// Whether a series of this name is in the book.
    pub fn has(&self, name: &EventName) -> bool {
        self.series.contains_key(name)
    }

    /// How many series wait to be posted.
    pub fn depth(&self) -> usize {
        self.series.values().filter(|entry| entry.series.posted < entry.series.count).count()
    }
}
