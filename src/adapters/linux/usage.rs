//! What copies take up (C46): walks that count blocks and inodes, one at a time, on a thread of their own.
//!
//! A walk goes by the store's path, never through a target (that would keep the target from being unmounted). Nobody
//! waits for one longer than [`ANSWER_WITHIN`]: what was counted so far is an answer, too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tokio::sync::Notify;

use super::count::{Progress, count};
use super::failure::{Failure, Outcome};
use super::store::StoreDirs;
use crate::domain::handle::Handle;
use crate::ports::copies::{Counted, Measured, Usage};

/// The longest that a caller waits for a walk.
pub const ANSWER_WITHIN: Duration = Duration::from_millis(900);
/// After a walk the copy is not walked again for this many times as long as it took: all walks together take a twentieth of
/// one processor. Not sooner than [`REST_MIN`], which is far less than a kubelet lets pass between two questions, and after
/// [`REST_MAX`] in any case.
const REST_FACTOR: u32 = 20;
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(600);

/// The walks over the copies of one store.
#[derive(Clone)]
pub struct UsageWalks {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<StoreDirs>,
    state: Mutex<State>,
    ended: Notify,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    copies: BTreeMap<Handle, Known>,
    waiting: VecDeque<Handle>,
    /// A thread works through `waiting`.
    working: bool,
}

#[derive(Default)]
struct Known {
    /// The latest walk that ended.
    whole: Option<(Usage, Instant, Duration)>,
    failed: Option<Failure>,
    /// The walk that goes on, or waits for its turn.
    progress: Option<Arc<Progress>>,
    /// The copy went while it was walked: what the walk brings is of no use.
    gone: bool,
}

impl UsageWalks {
    /// `stop` ends every walk, soon after it is set.
    pub fn new(store: Arc<StoreDirs>, stop: Arc<AtomicBool>) -> UsageWalks {
        let shared = Shared { store, state: Mutex::default(), ended: Notify::new(), stop };
        UsageWalks { shared: Arc::new(shared) }
    }

    /// What the copy takes up: of a walk that ended not long ago, else of one begun now, as far as it came.
    pub async fn usage(&self, handle: &Handle) -> Outcome<Usage> {
        let deadline = tokio::time::Instant::now() + ANSWER_WITHIN;
        let mut begun = false;
        loop {
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            // From here on no end of a walk is missed.
            ended.as_mut().enable();
            match self.shared.answer(handle, begun) {
                Answer::Fresh(Ok(usage)) => return Ok(usage),
                Answer::Fresh(Err(failure)) => {
                    // Nothing is kept of a walk that brought nothing: handles that are asked about are no list.
                    self.forget(handle);
                    return Err(failure);
                }
                Answer::Begin => {
                    begun = true;
                    self.begin(handle);
                }
                Answer::Wait => {}
            }
            if tokio::time::timeout_at(deadline, ended).await.is_err() {
                return Ok(self.shared.best(handle));
            }
        }
    }

    /// The sum over all copies walked so far. Copies that are gone are left out once [`UsageWalks::forget`] said so.
    pub fn counted(&self) -> Counted {
        let state = self.shared.state();
        let mut counted = Counted::default();
        for known in state.copies.values() {
            counted.unfinished += u64::from(known.progress.is_some());
            if let Some((usage, _, _)) = known.whole {
                counted.copies += 1;
                counted.bytes += usage.used_bytes;
            }
        }
        counted
    }

    /// The latest walk over the copy that has ended.
    pub fn measured(&self, handle: &Handle) -> Option<Measured> {
        let (usage, ended, _) = self.shared.state().copies.get(handle)?.whole?;
        Some(Measured { usage, ago: ended.elapsed() })
    }

    /// The copy is gone.
    pub fn forget(&self, handle: &Handle) {
        let mut state = self.shared.state();
        match state.copies.get_mut(handle) {
            Some(known) if known.progress.is_some() => known.gone = true,
            Some(_) => drop(state.copies.remove(handle)),
            None => {}
        }
    }

    fn begin(&self, handle: &Handle) {
        let mut state = self.shared.state();
        let known = state.copies.entry(handle.clone()).or_default();
        known.failed = None;
        known.progress = Some(Arc::default());
        state.waiting.push_back(handle.clone());
        if !std::mem::replace(&mut state.working, true) {
            let shared = Arc::clone(&self.shared);
            tokio::task::spawn_blocking(move || shared.work());
        }
    }
}

enum Answer {
    Fresh(Outcome<Usage>),
    Begin,
    Wait,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `asked` says that the caller has begun a walk already: then what it brought is the answer.
    fn answer(&self, handle: &Handle, asked: bool) -> Answer {
        let state = self.state();
        let Some(known) = state.copies.get(handle) else { return Answer::Begin };
        if known.progress.is_some() {
            return Answer::Wait;
        }
        let rested = |ended: Instant, took: Duration| ended.elapsed() >= rest(took);
        match (&known.whole, known.failed) {
            (_, Some(failure)) if asked => Answer::Fresh(Err(failure)),
            (Some((usage, ended, took)), None) if asked || !rested(*ended, *took) => {
                Answer::Fresh(Ok(*usage))
            }
            (Some(_) | None, Some(_) | None) => Answer::Begin,
        }
    }

    /// The latest whole walk, else what the present one has counted.
    fn best(&self, handle: &Handle) -> Usage {
        let state = self.state();
        let known = state.copies.get(handle);
        if let Some((usage, _, _)) = known.and_then(|known| known.whole) {
            return usage;
        }
        let progress = known.and_then(|known| known.progress.as_ref());
        progress.map_or_else(Usage::default, |progress| progress.usage(false))
    }

    /// Walks what waits, one copy after the other.
    fn work(&self) {
        let background = self.store.traffic().background();
        let stop = || {
            background.give_way();
            self.stop.load(Ordering::Relaxed)
        };
        loop {
            background.pause();
            let (handle, progress) = {
                let mut state = self.state();
                let Some(handle) = state.waiting.pop_front() else {
                    state.working = false;
                    return;
                };
                let progress = state.copies.get(&handle).and_then(|known| known.progress.clone());
                (handle, progress.unwrap_or_default())
            };
            let begun = Instant::now();
            let outcome = count(self.store.copies(), &handle, &progress, &stop);
            self.settle(&handle, outcome, begun);
            self.ended.notify_waiters();
        }
    }

    fn settle(&self, handle: &Handle, outcome: Outcome<Usage>, begun: Instant) {
        let mut state = self.state();
        let Some(known) = state.copies.get_mut(handle) else { return };
        if known.gone {
            state.copies.remove(handle);
            return;
        }
        known.progress = None;
        match outcome {
            Ok(usage) => known.whole = Some((usage, Instant::now(), begun.elapsed())),
            // No copy, nothing to remember of it.
            Err(failure) if failure.errno == Errno::NOENT => {
                (known.whole, known.failed) = (None, Some(failure))
            }
            Err(failure) => known.failed = Some(failure),
        }
    }
}

/// How long a copy is not walked again after a walk that took this long.
fn rest(took: Duration) -> Duration {
    took.saturating_mul(REST_FACTOR).clamp(REST_MIN, REST_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn walks() -> (tempfile::TempDir, UsageWalks, Handle) {
        let store = tempfile::tempdir().unwrap();
        let open = Arc::new(StoreDirs::open(store.path()).unwrap());
        (store, UsageWalks::new(open, Arc::default()), Handle::parse("h").unwrap())
    }

    /// As if a walk of the copy went on, and had counted this much.
    fn walking(walks: &UsageWalks, handle: &Handle, whole: Option<Usage>) -> Arc<Progress> {
        let progress = Arc::new(Progress { bytes: AtomicU64::new(4096), inodes: AtomicU64::new(7) });
        let known = Known {
            whole: whole.map(|usage| (usage, Instant::now(), Duration::ZERO)),
            progress: Some(Arc::clone(&progress)),
            ..Known::default()
        };
        walks.shared.state().copies.insert(handle.clone(), known);
        progress
    }

    #[tokio::test(start_paused = true)]
    async fn c46_nobody_waits_for_a_long_walk_and_hears_what_was_counted() {
        let (_store, walks, handle) = walks();
        walking(&walks, &handle, None);
        let so_far = Usage { used_bytes: 4096, used_inodes: 7, complete: false };
        assert_eq!(walks.usage(&handle).await, Ok(so_far));
        assert_eq!(walks.counted(), Counted { copies: 0, bytes: 0, unfinished: 1 });
    }

    #[tokio::test(start_paused = true)]
    async fn c46_while_a_later_walk_goes_on_the_last_whole_one_is_the_answer() {
        let (_store, walks, handle) = walks();
        let whole = Usage { used_bytes: 1, used_inodes: 1, complete: true };
        walking(&walks, &handle, Some(whole));
        assert_eq!(walks.usage(&handle).await, Ok(whole));
    }

    #[test]
    fn c46_walks_of_a_copy_are_as_far_apart_as_they_are_long() {
        let seconds = |s| Duration::from_secs(s);
        assert_eq!(rest(Duration::from_micros(50)), seconds(1));
        assert_eq!(rest(seconds(2)), seconds(40));
        assert_eq!(rest(seconds(3600)), seconds(600));
    }

    #[tokio::test]
    async fn c46_what_was_counted_of_a_copy_that_went_meanwhile_is_forgotten() {
        let (_store, walks, handle) = walks();
        walking(&walks, &handle, None);
        walks.forget(&handle);
        let late = Usage { used_bytes: 1, used_inodes: 1, complete: true };
        walks.shared.settle(&handle, Ok(late), Instant::now());
        assert_eq!(walks.counted(), Counted::default());
        assert_eq!(walks.usage(&handle).await.unwrap_err().errno, Errno::NOENT);
        assert!(walks.shared.state().copies.is_empty(), "nothing is kept of a handle without a copy");
    }

    #[tokio::test]
    async fn c42_a_walk_ends_when_it_is_told() {
        let (store, walks, handle) = walks();
        std::fs::create_dir(store.path().join("copies/h")).unwrap();
        walks.shared.stop.store(true, Ordering::Relaxed);
        assert_eq!(walks.usage(&handle).await.unwrap_err().errno, Errno::CANCELED);
    }
}
