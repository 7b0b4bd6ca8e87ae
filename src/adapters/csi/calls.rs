//! Where the driver's work for a call runs: on one thread of the driver's runtime that may block, from its first step to its
//! last. The thread that serves the socket hands a call over once and gets the answer once; a publish is a row of eight
//! short kernel calls, and waking a thread for each would cost more than the calls.
//!
//! A thread is taken only by a call whose turn it is ([`Pending`](super::pending::Pending)), so that however many calls of one
//! volume pile up behind one that hangs, they hold one thread (C19). Of those only a few begin at once: the kernel makes one mount
//! at a time, and threads that wait for it in line cost more than they do. A call that takes longer gives its place to the next,
//! so that none waits for one that hangs.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pending::InFlight;

/// Calls that run side by side before any of them is slow.
const PLACES: usize = 4;
/// How long a call has its place: many times what one takes.
const PLACE_KEPT_FOR: Duration = Duration::from_millis(10);

/// Why a call has no answer.
#[derive(Debug, Error)]
pub(super) enum Lost {
    #[error(transparent)]
    Ended(#[from] JoinError),
    #[error("nobody waits for it any more")]
    NotAwaited,
}

/// The calls at work in one runtime.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    runtime: Handle,
    tracker: TaskTracker,
    places: Arc<Semaphore>,
}

impl Calls {
    /// In the runtime that this is called in.
    pub(super) fn here() -> Self {
        let places = Arc::new(Semaphore::new(PLACES));
        Self { runtime: Handle::current(), tracker: TaskTracker::new(), places }
    }

    /// The calls that run to their end: what a shutdown waits for.
    pub(super) fn tracker(&self) -> TaskTracker {
        self.tracker.clone()
    }

    /// Runs a call to its end when its turn has come, also when whoever waits for it here goes away.
    pub(super) async fn to_its_end<T: Send + 'static>(
        &self,
        in_flight: InFlight,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let calls = self.clone();
        let ended = self.tracker.spawn(async move {
            let _turn = in_flight.turn().await;
            calls.on_a_thread(call).await
        });
        Ok(ended.await??)
    }

    /// Runs a call that changes nothing: it ends with whoever waits for it here.
    pub(super) async fn while_awaited<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let over = CancellationToken::new();
        let _awaited = over.clone().drop_guard();
        let call = async move { over.run_until_cancelled_owned(call).await };
        self.on_a_thread(call).await?.ok_or(Lost::NotAwaited)
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        // Nobody closes it.
        let place = self.places.acquire().await;
        let context = self.runtime.clone();
        let mut ended = self.runtime.spawn_blocking(move || context.block_on(call));
        match tokio::time::timeout(PLACE_KEPT_FOR, &mut ended).await {
            Ok(ended) => ended,
            Err(_) => {
                drop(place);
                ended.await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Mutex, mpsc};

    use super::super::pending::Pending;
    use super::*;

    #[tokio::test]
    async fn c19_calls_of_one_volume_hold_one_thread_and_those_of_another_do_not_wait() {
        let (calls, pending) = (Calls::here(), Pending::default());
        let (release, held) = mpsc::channel::<()>();
        let mut hung = Some(held);
        let waiting: Vec<_> = (0..600)
            .map(|_| {
                let (calls, in_flight) = (calls.clone(), pending.admit("a").expect("admitted"));
                let hung = hung.take();
                tokio::spawn(async move {
                    calls.to_its_end(in_flight, async move { hung.map(|held| held.recv()) }).await
                })
            })
            .collect();
        // More of "a" wait than the runtime has threads.
        let other = pending.admit("b").expect("admitted");
        assert_eq!(calls.to_its_end(other, async { 1 }).await.expect("an answer"), 1);
        assert!(!calls.tracker().is_empty(), "they wait");
        release.send(()).expect("the first waits");
        for call in waiting {
            call.await.expect("no panic").expect("an answer");
        }
    }

    /// Lets the runtime, whose clock stands still, and its threads go on until something is so.
    async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let limit = std::time::Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(std::time::Instant::now() < limit, "{what}");
            std::thread::sleep(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c19_a_call_that_is_slow_gives_its_place_to_one_of_another_volume() {
        let (calls, pending) = (Calls::here(), Pending::default());
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let begun = Arc::new(AtomicUsize::new(0));
        let start = |volume: String, hangs: bool| {
            let (calls, in_flight) = (calls.clone(), pending.admit(&volume).expect("admitted"));
            let (begun, held) = (begun.clone(), held.clone());
            let call = async move {
                begun.fetch_add(1, SeqCst);
                // One waits for the channel, the others for the lock.
                hangs && held.lock().map(|held| held.recv()).is_ok()
            };
            tokio::spawn(async move { calls.to_its_end(in_flight, call).await })
        };
        let hung: Vec<_> = (0..2 * PLACES).map(|number| start(format!("hung-{number}"), true)).collect();
        until("the first take all places", || begun.load(SeqCst) == PLACES).await;
        let other = start("other".to_owned(), false);

        for round in 1..=2 {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(
                begun.load(SeqCst),
                round * PLACES,
                "those that are at work have had their places for no time"
            );
            tokio::time::advance(PLACE_KEPT_FOR).await;
            let next = if round == 1 { 2 * PLACES } else { 2 * PLACES + 1 };
            until("slow calls give theirs away", || begun.load(SeqCst) == next).await;
        }
        assert!(!other.await.expect("no panic").expect("an answer"));
        drop(release);
        for call in hung {
            assert!(call.await.expect("no panic").expect("an answer"));
        }
    }

    #[tokio::test]
    async fn c16_a_call_ends_without_its_caller() {
        let (calls, pending) = (Calls::here(), Pending::default());
        let (tell, told) = tokio::sync::oneshot::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        let call = async move {
            let _ = wait.recv();
            let _ = tell.send(1);
        };
        let in_flight = pending.admit("a").expect("admitted");
        let caller = tokio::spawn({
            let calls = calls.clone();
            async move { calls.to_its_end(in_flight, call).await }
        });
        tokio::task::yield_now().await;
        caller.abort();
        assert!(caller.await.expect_err("aborted").is_cancelled());
        go_on.send(()).expect("the call is there");
        assert_eq!(told.await, Ok(1));
    }

    #[tokio::test]
    async fn a_call_that_changes_nothing_ends_with_its_caller() {
        let calls = Calls::here();
        let (alive, over) = tokio::sync::oneshot::channel::<()>();
        let caller = tokio::spawn(async move {
            calls
                .while_awaited(async move {
                    let _alive = alive;
                    std::future::pending::<()>().await;
                })
                .await
        });
        tokio::task::yield_now().await;
        caller.abort();
        over.await.expect_err("the call is gone");
    }

    #[tokio::test]
    async fn c19_a_call_that_panics_is_lost_and_the_next_has_its_turn() {
        let (calls, pending) = (Calls::here(), Pending::default());
        let lost =
            calls.to_its_end(pending.admit("a").expect("admitted"), async { panic!("as a bug would") });
        assert!(matches!(lost.await, Err(Lost::Ended(error)) if error.is_panic()));
        let next = calls.to_its_end(pending.admit("a").expect("admitted"), async { 1 });
        assert_eq!(next.await.expect("an answer"), 1);
    }
}
