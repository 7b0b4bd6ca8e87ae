//! Where the driver's work for a call runs: on the thread that read it from the socket, from its first step to its last. A
//! publish is a row of short kernel calls; waking another thread for it, and this one for the answer, would cost as much as they.
//!
//! The kernel may keep any of them for ever, and other calls must not wait then (C19). So of the socket's threads one more
//! than may block serves on; [`watch`] sees to it that a thread does so soon after another is stuck; and a call that finds only
//! stuck ones, or that has to wait in its middle, goes on on a thread of the driver's runtime.
//!
//! A call begins when its turn has come ([`Pending`](super::pending::Pending)), so that however many of one volume pile up behind
//! one that hangs, they hold one thread. Few begin side by side, since the kernel makes one mount at a time, and threads that wait
//! for it in line cost more than they do.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use thiserror::Error;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinError;
use tokio::time::{sleep, timeout};
use tokio_util::context::TokioContext;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::pending::InFlight;
use crate::ports::in_place;

/// Calls that may block a thread of the socket at a time.
const PLACES: usize = 2;
/// The socket's threads: one always serves.
pub const SOCKET_THREADS: usize = PLACES + 1;
/// A call that gets no place takes a thread of its own when none has ended for so long: many times what one takes.
const PATIENCE: Duration = Duration::from_millis(10);
/// How often [`watch`] looks whether calls get on.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Looks without a call after which nobody watches until the next one.
const QUIET_LOOKS: u32 = 20;

/// Why a call has no answer.
#[derive(Debug, Error)]
pub(super) enum Lost {
    #[error(transparent)]
    Ended(#[from] JoinError),
    #[error("it panicked")]
    Panicked,
    #[error("nobody waits for it any more")]
    NotAwaited,
}

/// The calls at work in one runtime.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    runtime: Handle,
    tracker: TaskTracker,
    places: Arc<Places>,
}

/// Where calls run on the socket's threads.
#[derive(Debug)]
struct Places {
    free: Semaphore,
    taken: AtomicUsize,
    /// How many have been given back.
    ended: AtomicUsize,
    is_watched: AtomicBool,
}

/// A thread of the socket that a call may block, until dropped.
struct Place<'a> {
    places: &'a Places,
    _permit: SemaphorePermit<'a>,
}

impl Calls {
    /// In the runtime that this is called in.
    pub(super) fn here() -> Self {
        let places = Places {
            free: Semaphore::new(PLACES),
            taken: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            is_watched: AtomicBool::new(false),
        };
        Self { runtime: Handle::current(), tracker: TaskTracker::new(), places: Arc::new(places) }
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
            calls.run(call).await
        });
        ended.await?
    }

    /// Runs a call that changes nothing: it ends with whoever waits for it here.
    pub(super) async fn while_awaited<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        let over = CancellationToken::new();
        let _awaited = over.clone().drop_guard();
        let call = async move { over.run_until_cancelled_owned(call).await };
        self.run(call).await?.ok_or(Lost::NotAwaited)
    }

    async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Lost> {
        // Timers and tasks of the call are the driver's, wherever it runs.
        let mut call = Box::pin(TokioContext::new(in_place::scope(call), self.runtime.clone()));
        let Some(place) = self.place().await else { return self.on_a_thread(call).await };
        let begun =
            poll_fn(|context| Poll::Ready(catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)))));
        let begun = begun.await;
        drop(place);
        match begun {
            Ok(Poll::Ready(answer)) => Ok(answer),
            Ok(Poll::Pending) => self.on_a_thread(call).await,
            Err(_) => Err(Lost::Panicked),
        }
    }

    /// A place on this thread; none where it must not block, or where the places are taken by calls that hang.
    async fn place(&self) -> Option<Place<'_>> {
        let socket = Handle::current();
        if socket.runtime_flavor() != RuntimeFlavor::MultiThread || socket.metrics().num_workers() <= PLACES {
            return None;
        }
        let places = &*self.places;
        let permit = loop {
            let ended = places.ended.load(SeqCst);
            match timeout(PATIENCE, places.free.acquire()).await {
                Ok(permit) => break permit.ok()?,
                Err(_) if places.ended.load(SeqCst) == ended => return None,
                Err(_) => {}
            }
        };
        places.taken.fetch_add(1, SeqCst);
        if !places.is_watched.swap(true, SeqCst) {
            self.runtime.spawn(watch(Arc::clone(&self.places), socket));
        }
        Some(Place { places, _permit: permit })
    }

    async fn on_a_thread<F>(&self, call: Pin<Box<F>>) -> Result<F::Output, Lost>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let context = self.runtime.clone();
        Ok(self.runtime.spawn_blocking(move || context.block_on(call)).await?)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.places.ended.fetch_add(1, SeqCst);
        self.places.taken.fetch_sub(1, SeqCst);
    }
}

/// A thread that serves the socket waits for what comes next only when it is done with what came; while it is stuck in a call
/// the others sleep. Wakes one of them then: it takes over, and whatever the stuck one had still to do.
async fn watch(places: Arc<Places>, socket: Handle) {
    let mut quiet = 0;
    loop {
        let ended = places.ended.load(SeqCst);
        sleep(LOOK_EVERY).await;
        let (is_taken, none_ended) = (places.taken.load(SeqCst) > 0, places.ended.load(SeqCst) == ended);
        if is_taken && none_ended {
            socket.spawn(async {});
        }
        quiet = if is_taken || !none_ended { 0 } else { quiet + 1 };
        if quiet < QUIET_LOOKS {
            continue;
        }
        places.is_watched.store(false, SeqCst);
        // Whoever took a place just now has seen that somebody watches.
        if places.taken.load(SeqCst) == 0 || places.is_watched.swap(true, SeqCst) {
            return;
        }
        quiet = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

    use tokio::runtime::{Builder, Runtime};

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

    /// The driver's runtime, and one whose threads serve a socket, by this name.
    struct Runtimes {
        driver: Runtime,
        socket: Runtime,
    }

    const SOCKET: &str = "socket";
    /// Nothing here takes that long.
    const LIMIT: Duration = Duration::from_secs(60);

    impl Runtimes {
        fn new() -> Self {
            let of = |threads, name: &str| {
                Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build()
            };
            let (driver, socket) = (of(1, "driver"), of(SOCKET_THREADS, SOCKET));
            Self { driver: driver.expect("a runtime"), socket: socket.expect("a runtime") }
        }

        fn calls(&self) -> Calls {
            self.driver.block_on(async { Calls::here() })
        }

        /// Begins a call of a volume of its own, as the socket's threads do.
        fn begin<T: Send + 'static>(
            &self,
            calls: &Calls,
            call: impl Future<Output = T> + Send + 'static,
        ) -> mpsc::Receiver<Result<T, Lost>> {
            let (calls, (tell, told)) = (calls.clone(), mpsc::channel());
            let in_flight = Pending::default().admit("a").expect("admitted");
            self.socket.spawn(async move { tell.send(calls.to_its_end(in_flight, call).await) });
            told
        }
    }

    impl Drop for Runtimes {
        fn drop(&mut self) {
            for runtime in [&mut self.driver, &mut self.socket] {
                let other = Builder::new_current_thread().build().expect("a runtime");
                std::mem::replace(runtime, other).shutdown_background();
            }
        }
    }

    fn thread_name() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_call_runs_on_the_thread_that_serves_it_until_it_has_to_wait() {
        let runtimes = Runtimes::new();
        let calls = runtimes.calls();
        let at_once = runtimes.begin(&calls, async { (thread_name(), in_place::may_block()) });
        let ran = at_once.recv_timeout(LIMIT).expect("an answer").expect("no panic");
        assert_eq!(ran, (SOCKET.to_owned(), true));
        let waits = async {
            let before = thread_name();
            tokio::task::yield_now().await;
            (before, thread_name(), in_place::may_block())
        };
        let waited = runtimes.begin(&calls, waits);
        let (before, after, may_block) = waited.recv_timeout(LIMIT).expect("an answer").expect("no panic");
        assert_eq!((before.as_str(), may_block), (SOCKET, true));
        assert_ne!(after, SOCKET);
    }

    #[test]
    fn c19_calls_that_hang_keep_neither_the_socket_nor_other_calls() {
        let runtimes = Runtimes::new();
        let calls = runtimes.calls();
        let (mut near, far) = UnixStream::pair().expect("a socket");
        far.set_nonblocking(true).expect("not blocking");
        let far = runtimes.socket.block_on(async { tokio::net::UnixStream::from_std(far) });
        let mut far = far.expect("a socket");
        runtimes.socket.spawn(async move {
            let (mut from, mut to) = far.split();
            tokio::io::copy(&mut from, &mut to).await
        });
        near.set_read_timeout(Some(LIMIT)).expect("a limit");
        let mut echoes = || {
            near.write_all(b"x")?;
            near.read_exact(&mut [0])
        };
        echoes().expect("the socket is served");

        let mut hung = Vec::new();
        for _ in 0..2 * SOCKET_THREADS {
            let ((release, held), (begin, begun)) = (mpsc::channel::<()>(), mpsc::channel());
            let answer = runtimes.begin(&calls, async move {
                let _ = begin.send(thread_name());
                held.recv().is_ok()
            });
            hung.push((release, answer, begun.recv_timeout(LIMIT).expect("it begins")));
            echoes().expect("the socket is served");
            let other = runtimes.begin(&calls, async { 1 });
            assert_eq!(other.recv_timeout(LIMIT).expect("an answer").expect("no panic"), 1);
        }
        let on_the_socket = hung.iter().filter(|(_, _, name)| name == SOCKET).count();
        assert_eq!(on_the_socket, PLACES, "one thread of the socket's always serves");

        for (release, answer, _) in hung {
            release.send(()).expect("it waits");
            assert!(answer.recv_timeout(LIMIT).expect("an answer").expect("no panic"));
        }
        let again = runtimes.begin(&calls, async { thread_name() });
        assert_eq!(again.recv_timeout(LIMIT).expect("an answer").expect("no panic"), SOCKET);
    }

    #[test]
    fn c16_a_call_that_panics_is_lost_alone() {
        let runtimes = Runtimes::new();
        let calls = runtimes.calls();
        for _ in 0..=PLACES {
            let lost = runtimes.begin(&calls, async { panic!("as a bug would") });
            let lost: Result<(), Lost> = lost.recv_timeout(LIMIT).expect("an answer");
            assert!(matches!(lost, Err(Lost::Panicked)), "{lost:?}");
        }
        let other = runtimes.begin(&calls, async { thread_name() });
        assert_eq!(other.recv_timeout(LIMIT).expect("an answer").expect("no panic"), SOCKET);
    }

    #[test]
    fn nobody_watches_when_there_is_nothing_to_watch() {
        let runtimes = Runtimes::new();
        let calls = runtimes.calls();
        for _ in 0..2 {
            let call = runtimes.begin(&calls, async { 1 });
            assert_eq!(call.recv_timeout(LIMIT).expect("an answer").expect("no panic"), 1);
            let began = std::time::Instant::now();
            while calls.places.is_watched.load(SeqCst) {
                assert!(began.elapsed() < LIMIT, "it is watched for ever");
                std::thread::sleep(LOOK_EVERY);
            }
            assert_eq!(calls.places.taken.load(SeqCst), 0);
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
