//! Bounds of everything this adapter waits for, keeps or repeats.
//!
//! Each number has a name and a reason here, and nowhere else is a duration written down. Tests shorten them; nothing
//! in production changes them.

use std::time::Duration;

/// PersistentVolumes asked for in one page of a list: what C48 lets stay in memory at once. Pages of 100 cost 9 MiB of
/// resident memory at 100,000 volumes, pages of 500 cost 14.6 MiB.
pub const PAGE_ITEMS_MAX: u32 = 100;

/// Pages of one list. A server that hands out continue tokens for ever is a failed read, not an endless one.
pub const PAGES_MAX: u32 = 100_000;

/// Bytes of one page. A page of larger objects is asked for again with half as many of them.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of one line of a stream: one event with one object. etcd keeps at most 1.5 MiB of an object.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of any other answer that is read: a namespace, an error.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Streamed lists that may break after they were accepted before this process keeps to pages.
pub const BROKEN_STREAMED_LISTS_MAX: u32 = 2;

/// The longest the adapter lets a server's `Retry-After` hold it back.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Time limits and pauses of the adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Until a TCP connection (and its TLS handshake) must stand.
    pub connect_timeout: Duration,
    /// From sending a request until the head of its answer.
    pub answer_timeout: Duration,
    /// Between two pieces of the body of an ordinary answer.
    pub body_timeout: Duration,
    /// One list from its first request to its last byte; also what a streamed list asks of the server.
    pub list_timeout: Duration,
    /// Between two pieces of a watch. Bookmarks come about once a minute, so two of them must have failed to come.
    pub watch_idle_timeout: Duration,
    /// How long a watch asks the server to last, before jitter of as much again.
    pub watch_length: Duration,
    /// A chain of watch streams is broken by a gap longer than this (C22 (b)): the adapter then lists anew.
    pub chain_gap_max: Duration,
    /// First pause after a failure; it doubles with each failure in a row.
    pub backoff_first: Duration,
    /// Longest pause after failures.
    pub backoff_max: Duration,
    /// Pause before a watch that its server ended in good order is opened again, before jitter of as much again.
    pub reopen_pause: Duration,
    /// What is asked for a proof waits up to this: a deletion wakes every node of a cluster at the same instant.
    pub proof_jitter: Duration,
    /// What each PersistentVolume of the last list adds to `proof_jitter`: where there are many there are many nodes, and a
    /// list costs the server what it is long.
    pub proof_jitter_per_volume: Duration,
    /// The longest wait before a full list.
    pub list_jitter_max: Duration,
    /// The longest wait before a read of the head.
    pub head_jitter_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(180),
            watch_idle_timeout: Duration::from_secs(150),
            watch_length: Duration::from_secs(290),
            chain_gap_max: Duration::from_secs(10),
            backoff_first: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            reopen_pause: Duration::from_millis(100),
            proof_jitter: Duration::from_secs(1),
            proof_jitter_per_volume: Duration::from_micros(600),
            list_jitter_max: Duration::from_secs(60),
            head_jitter_max: Duration::from_secs(10),
        }
    }
}
