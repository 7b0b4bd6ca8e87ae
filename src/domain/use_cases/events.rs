//! Telling refusals, and what happens to a node's copies as a whole: into the book at once, to the store and the API server by steps that a loop drives
//! (C30–C33). A publish never waits for either.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::driver::Driver;
use crate::domain::event_series::{Post, PostOutcome, Recorded, Series, SeriesBook, SeriesKey};
use crate::domain::handle::Handle;
use crate::domain::outage::Outage;
use crate::domain::pod::{PodReference, Subject};
use crate::domain::recent_refusals::{RecentRefusals, RefusalKey};
use crate::domain::refusal::{Reason, Refusal};
use crate::domain::signal::Signal;
use crate::ports::event_sink::EventSinkError;
use std::sync::atomic::Ordering;

/// How long until a series that could not be written is written again.
const SAVE_AGAIN: Duration = Duration::from_secs(10);
/// Posts that one step makes at most, so that a step ends.
const POSTS_PER_STEP_MAX: usize = 64;

/// The book of series, the signal that something is to be posted, and what the log was told of posts that fail.
pub struct Events {
    book: Mutex<SeriesBook>,
    wanted: Signal,
    /// Of creating and of patching: a role may allow one of them.
    outages: Mutex<[Outage; 2]>,
    recent: Mutex<RecentRefusals>,
}

impl Events {
    pub(super) fn new(window: Duration, kept: Vec<Series>) -> Events {
        let book = Mutex::new(SeriesBook::new(window, kept));
        Events { book, wanted: Signal::default(), outages: Mutex::default(), recent: Mutex::default() }
    }

    pub(super) fn wanted(&self) -> &Signal {
        &self.wanted
    }

    /// The lock is held for the time of a look at the book and never over an await.
    fn book(&self) -> MutexGuard<'_, SeriesBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was refused lately; the lock is held as the book's is.
    pub(super) fn recent(&self) -> MutexGuard<'_, RecentRefusals> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a post that has to be tried again, once for each outage, and the end of one.
    fn log_outage(&self, is_patch: bool, failure: Option<&str>) {
        let mut outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let outage = &mut outages[usize::from(is_patch)];
        let call = if is_patch { "patch" } else { "create" };
        match failure {
            Some(why) if outage.failed(why) => {
                tracing::warn!(call, why, "events are not posted; they are counted, and posted later");
            }
            None if outage.worked() => tracing::info!(call, "events are posted again"),
            Some(_) | None => {}
        }
    }
}

impl Driver {
    /// Counts a refusal of a publish of `volume_id`, and queues its event where the request named a pod.
    pub(super) fn tell(&self, refusal: &Refusal, volume_id: &str, pod: Option<PodReference>) {
        let (reason, message) = (refusal.reason(), refusal.to_string());
        self.tally.refused(reason);
        let recent = RefusalKey::new(Handle::parse(volume_id).ok(), pod.clone(), reason, &message);
        self.events.recent().record(recent, self.ports.clock.wall());
        let Some(pod) = pod else { return };
        self.record(SeriesKey::new(pod, reason, message));
    }

    /// Queues an event on the node: what concerns no pod and yet a person has to see (C26).
    pub(super) fn tell_node(&self, reason: Reason, message: &str) {
        let node = Subject::Node(self.settings.node_name.clone());
        self.record(SeriesKey::new(node, reason, message.to_owned()));
    }

    fn record(&self, key: SeriesKey) {
        let recorded = {
            let mut book = self.events.book();
            let recorded = book.record(key, self.ports.clock.wall());
            self.tally.events_queued.store(book.depth() as u64, Ordering::Relaxed);
            recorded
        };
        if recorded == Recorded::Dropped {
            self.tally.events_dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.events.wanted.raise();
    }

    /// Writes changed series to the store, then posts what is due. Answers how long to wait for the next post
    /// that is due by itself; `None` where only a new refusal can make one.
    pub async fn step_events(&self) -> Option<Duration> {
        self.save_series().await;
        for _ in 0..POSTS_PER_STEP_MAX {
            let now = self.ports.clock.monotonic();
            let Some(post) = self.events.book().next_post(now) else { break };
            self.post(post).await;
            // Between any two posts, so that refusals outlive a restart also while the API server is slow.
            self.save_series().await;
        }
        let expired = self.events.book().expire(self.ports.clock.wall());
        for name in expired {
            self.drop_series(&name).await;
        }
        let now = self.ports.clock.monotonic();
        let book = self.events.book();
        self.tally.events_queued.store(book.depth() as u64, Ordering::Relaxed);
        let next_post = book.next_due().map(|due| due.since(now));
        let next_save = book.has_unsaved().then_some(SAVE_AGAIN);
        next_post.into_iter().chain(next_save).min()
    }

    async fn post(&self, post: Post) {
        let (Post::Create(series) | Post::Patch(series)) = &post;
        // No count is told that a restart would not know: it would patch a lower one (C32).
        let unsaved = self.events.book().take_unsaved_of(&series.name);
        if let Some(unsaved) = unsaved {
            self.put_series(&unsaved).await;
        }
        let is_patch = matches!(post, Post::Patch(_));
        let (series, answer) = match post {
            Post::Create(series) => {
                let answer = self.ports.sink.create(&series).await;
                (series, answer)
            }
            Post::Patch(series) => {
                let answer = self.ports.sink.patch(&series).await;
                (series, answer)
            }
        };
        let outcome = match answer {
            Ok(()) => {
                self.tally.events_posted.fetch_add(1, Ordering::Relaxed);
                self.events.log_outage(is_patch, None);
                PostOutcome::Taken
            }
            Err(EventSinkError::AlreadyExists) => PostOutcome::AlreadyThere,
            Err(EventSinkError::NotFound) => PostOutcome::Gone,
            Err(EventSinkError::NamespaceGone) => PostOutcome::Ended,
            Err(error @ EventSinkError::Rejected { .. }) => {
                tracing::warn!(event = series.name.as_str(), subject = %series.key.subject, %error, "event given up");
                self.tally.events_dropped.fetch_add(1, Ordering::Relaxed);
                PostOutcome::Ended
            }
            Err(EventSinkError::Retry { why, retry_after }) => {
                self.events.log_outage(is_patch, Some(&why));
                self.tally.event_failures.fetch_add(1, Ordering::Relaxed);
                PostOutcome::Retry { after: retry_after }
            }
        };
        let now = self.ports.clock.monotonic();
        let goes_on = self.events.book().settle(&series, outcome, now);
        if !goes_on {
            self.drop_series(&series.name).await;
        }
    }

    /// Writes changed series to the store, for the next process: all that is left to do for them when this one ends.
    pub async fn save_series(&self) {
        let unsaved = self.events.book().take_unsaved();
        for series in unsaved {
            self.put_series(&series).await;
        }
        self.drop_forgotten().await;
    }

    /// Drops from the store what is no longer in the book.
    async fn drop_forgotten(&self) {
        for series in self.ports.records.series() {
            let known = self.events.book().has(&series.name);
            if !known {
                self.drop_series(&series.name).await;
            }
        }
    }

    /// A series that cannot be written is still posted, and written later; until then its count would not
    /// outlive a restart.
    async fn put_series(&self, series: &Series) {
        // The store has room for as many as the book: what had to leave the book for this one leaves the store before it.
        self.drop_forgotten().await;
        if !self.events.book().has(&series.name) {
            return;
        }
        if let Err(error) = self.ports.records.put_series(series).await {
            tracing::warn!(event = series.name.as_str(), %error, "event series not yet kept for a restart");
            self.events.book().keep_unsaved(&series.name);
        }
    }

    async fn drop_series(&self, name: &crate::domain::event_series::EventName) {
        if let Err(error) = self.ports.records.drop_series(name).await {
            tracing::warn!(event = name.as_str(), %error, "finished event series not dropped from the store");
        }
    }
}
