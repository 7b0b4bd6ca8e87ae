//! Keeps the live view: lists once, then follows the watch, and lists again when the chain breaks.
//!
//! A chain is a list and the watch streams after it, each begun at the revision the last one reached, with no gap longer
//! than [`Settings::chain_gap_max`] (C22 (b)). What breaks it: 410, an object that cannot be decoded, a revision that goes
//! back, a silence, a gap. The loop never ends by itself and never gives up; each pause and each wait in it is bounded.

use std::sync::Arc;

use tokio::time::{Instant, sleep, timeout_at};

use crate::domain::tally::Tally;

use super::api_error::ApiError;
use super::backoff::{Backoff, doubled, jitter};
use super::calls::Call;
use super::lines::Lines;
use super::listing::Lister;
use super::live_view::{LiveView, Writer};
use super::settings::Settings;
use super::volume::{WatchEvent, read_event};

/// The task behind a [`LiveView`].
pub struct Watcher {
    lister: Arc<Lister>,
    view: Arc<LiveView>,
    tally: Arc<Tally>,
    settings: Settings,
}

/// The failures since something worked.
#[derive(Default)]
struct Trouble {
    backoff: Backoff,
    /// The class that the log was told last, until a list works again.
    told: Option<&'static str>,
}

/// How a stream ended, and whether it had been good for anything.
struct StreamEnd {
    /// `None` where the server ended it in good order.
    error: Option<ApiError>,
    /// Whether a line came.
    delivered: bool,
}

impl Watcher {
    /// A watcher that writes `view`.
    #[must_use]
    pub fn new(lister: Arc<Lister>, view: Arc<LiveView>, tally: Arc<Tally>, settings: Settings) -> Self {
        Self { lister, view, tally, settings }
    }

    /// Watches until it is dropped.
    pub async fn run(&self) {
        loop {
            tokio::select! {
                // First, so that nothing more of a given-up history is taken in.
                biased;
                () = self.view.started_over() => tracing::info!("the view of PersistentVolumes begins anew"),
                () = self.chains() => {}
            }
        }
    }

    /// One chain after the other. Never returns.
    async fn chains(&self) {
        let mut trouble = Trouble::default();
        loop {
            let writer = self.view.writer();
            let why = self.one_chain(&writer, &mut trouble).await;
            writer.stream_ended();
            let pause = trouble.backoff.pause_after(&why, &self.settings);
            let pause_ms = pause.as_millis();
            // An outage is one line in the log, not one for each try.
            if trouble.told == Some(why.class()) {
                tracing::debug!(
                    class = why.class(),
                    pause_ms,
                    "PersistentVolumes are still not watched: {why}"
                );
            } else {
                tracing::warn!(
                    class = why.class(),
                    pause_ms,
                    "PersistentVolumes are not watched, and nothing is swept until they are listed again: {why}"
                );
            }
            trouble.told = Some(why.class());
            sleep(pause).await;
        }
    }

    /// One list and what follows it, until the chain breaks.
    async fn one_chain(&self, writer: &Writer, trouble: &mut Trouble) -> ApiError {
        let highest_before = self.view.health().highest;
        let begun = self.lister.list_for(self.watch_seconds()).await;
        Call::WatchList.count(&self.tally, begun.as_ref().err());
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => return error,
        };
        trouble.told = None;
        tracing::info!(
            revision = begun.listing.revision,
            volumes = begun.listing.item_count,
            own_volumes = begun.listing.volumes.len(),
            streamed = begun.watch.is_some(),
            "the PersistentVolumes are listed"
        );
        writer.begin(begun.listing, highest_before);
        let mut stream = begun.watch;
        // Streams in a row that ended without a line.
        let mut barren: u32 = 0;
        loop {
            let lines = match stream.take() {
                Some(lines) => lines,
                None => match self.reopened(barren).await {
                    Ok(lines) => lines,
                    Err(error) => {
                        if matches!(error, ApiError::WentBack { .. }) {
                            writer.went_back();
                        }
                        return error;
                    }
                },
            };
            writer.stream_stands();
            let end = self.follow(lines, writer).await;
            writer.stream_ended();
            Call::Watch.count(&self.tally, end.error.as_ref());
            if end.delivered {
                trouble.backoff.reset();
                barren = 0;
            } else {
                barren = barren.saturating_add(1);
            }
            if let Some(error) = end.error.filter(breaks_the_chain) {
                return error;
            }
        }
    }

    /// The next stream of a chain, if it stands before the gap is too long.
    async fn reopened(&self, barren: u32) -> Result<Lines, ApiError> {
        let deadline = Instant::now() + self.settings.chain_gap_max;
        let pause = doubled(self.settings.reopen_pause, barren, self.settings.backoff_max);
        let mut pause = pause + jitter(pause);
        let mut backoff = Backoff::default();
        let mut why = ApiError::Closed;
        loop {
            if Instant::now() + pause >= deadline {
                return Err(why);
            }
            sleep(pause).await;
            let late = |_| ApiError::Timeout { waiting_for: "the next watch of the chain" };
            let opened = timeout_at(deadline, self.linked()).await.map_err(late);
            why = match opened.and_then(|opened| opened) {
                Ok(lines) => return Ok(lines),
                Err(error) => error,
            };
            Call::Watch.count(&self.tally, Some(&why));
            if breaks_the_chain(&why) {
                return Err(why);
            }
            pause = backoff.pause_after(&why, &self.settings);
        }
    }

    /// A stream that goes on where the last one ended, in the same history. A server takes a revision that its etcd has
    /// not reached yet and is silent until it is passed: an etcd put back meanwhile is told by its head alone. It is read
    /// once the stream stands, so that no moment is left unwatched.
    async fn linked(&self) -> Result<Lines, ApiError> {
        let reached = self.view.reached();
        let lines = self.lister.watch_from(reached, self.watch_seconds()).await?;
        let head = self.lister.head().await;
        Call::Head.count(&self.tally, head.as_ref().err());
        match head? {
            head if head < reached => Err(ApiError::WentBack { from: reached, to: head }),
            _ => Ok(lines),
        }
    }

    /// Reads a stream to its end.
    async fn follow(&self, mut lines: Lines, writer: &Writer) -> StreamEnd {
        let mut delivered = false;
        let error = loop {
            let event = match lines.next().await {
                Ok(Some(line)) => read_event(line, self.lister.driver_name()),
                Ok(None) => break None,
                Err(error) => Err(error),
            };
            if let Err(error) = event.and_then(|event| apply(event, writer)) {
                break Some(error);
            }
            delivered = true;
        };
        StreamEnd { error, delivered }
    }

    /// How long a watch is asked to last: jittered, so that all nodes do not come back at once.
    fn watch_seconds(&self) -> u64 {
        (self.settings.watch_length + jitter(self.settings.watch_length)).as_secs().max(1)
    }
}

fn apply(event: WatchEvent, writer: &Writer) -> Result<(), ApiError> {
    match event {
        WatchEvent::Named { volume, revision } => writer.named(volume, revision),
        WatchEvent::Deleted { volume, revision } => writer.deleted(&volume, revision),
        WatchEvent::Bookmark { revision, ends_initial_events: _ } => writer.bookmark(revision),
        WatchEvent::Failed(error) => Err(error),
    }
}

/// Whether going on from the last revision is no use, or no proof, after `error`.
fn breaks_the_chain(error: &ApiError) -> bool {
    match error {
        ApiError::Gone
        | ApiError::Undecodable { .. }
        | ApiError::WentBack { .. }
        | ApiError::Oversize { .. }
        // A silence: the gap began with it, and it was longer than a chain allows.
        | ApiError::Timeout { .. } => true,
        ApiError::Unauthorized
        | ApiError::Forbidden
        | ApiError::NotFound
        | ApiError::NamespaceEnding
        | ApiError::AlreadyExists
        | ApiError::Conflict
        | ApiError::Throttled { .. }
        | ApiError::Server { .. }
        | ApiError::Refused { .. }
        | ApiError::Unreachable { .. }
        | ApiError::Closed => false,
    }
}
