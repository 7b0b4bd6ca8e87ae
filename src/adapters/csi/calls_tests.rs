//! Where calls run, and what becomes of them when they hang, panic, or are not awaited any more.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Builder, Runtime};

use super::super::pending::Pending;
use super::super::places::{PLACES, SOCKET_THREADS};
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

/// What a call answers that does not panic.
fn answer<T>(told: &mpsc::Receiver<Result<T, Lost>>) -> T {
    told.recv_timeout(LIMIT).expect("an answer").expect("no panic")
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn a_call_runs_on_the_thread_that_serves_it_until_it_has_to_wait() {
    let runtimes = Runtimes::new();
    let calls = runtimes.calls();
    let at_once = runtimes.begin(&calls, async { (thread_name(), in_place::may_block()) });
    assert_eq!(answer(&at_once), (SOCKET.to_owned(), true));
    let waits = async {
        let before = thread_name();
        tokio::task::yield_now().await;
        (before, thread_name(), in_place::may_block())
    };
    let (before, after, may_block) = answer(&runtimes.begin(&calls, waits));
    assert_eq!((before.as_str(), may_block), (SOCKET, true));
    assert_ne!(after, SOCKET);
}

/// What a client asks of [`serve`], a byte each.
const HANG: u8 = b'h';
const ANSWER: u8 = b'a';

/// Serves a connection as the socket's threads do: what a call does begins on the thread that read it. Those that hang wait
/// for `held`, and tell where they are.
async fn serve(
    mut connection: tokio::net::UnixStream,
    calls: Calls,
    held: Arc<Mutex<mpsc::Receiver<()>>>,
    tell: mpsc::Sender<String>,
) -> std::io::Result<()> {
    loop {
        let hangs = connection.read_u8().await? == HANG;
        let (calls, held, tell) = (calls.clone(), held.clone(), tell.clone());
        let in_flight = Pending::default().admit("a").expect("admitted");
        let call = async move {
            if hangs {
                let _ = tell.send(thread_name());
                // One waits for the channel, the others for the lock.
                let _ = held.lock().map(|held| held.recv());
            }
        };
        let answer = tokio::spawn(async move { calls.to_its_end(in_flight, call).await });
        if !hangs {
            answer.await?.expect("no panic");
            connection.write_all(&[ANSWER]).await?;
        }
    }
}

#[test]
fn c19_calls_that_hang_keep_neither_the_socket_nor_other_calls() {
    let runtimes = Runtimes::new();
    let calls = runtimes.calls();
    let (mut near, far) = UnixStream::pair().expect("a socket");
    far.set_nonblocking(true).expect("not blocking");
    near.set_read_timeout(Some(LIMIT)).expect("a limit");
    let (release, held) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let served = calls.clone();
    runtimes.socket.spawn(async move {
        let connection = tokio::net::UnixStream::from_std(far)?;
        serve(connection, served, Arc::new(Mutex::new(held)), tell).await
    });

    let mut on_the_socket = 0;
    for _ in 0..2 * SOCKET_THREADS {
        near.write_all(&[HANG]).expect("sent");
        on_the_socket += usize::from(told.recv_timeout(LIMIT).expect("it begins") == SOCKET);
        for _ in 0..3 {
            near.write_all(&[ANSWER]).expect("sent");
            near.read_exact(&mut [0]).expect("the socket is served, and other calls are answered");
        }
    }
    assert_eq!(on_the_socket, PLACES, "one thread of the socket's always serves");
    drop(release);
    let ended = Instant::now() + LIMIT;
    while !calls.tracker().is_empty() {
        assert!(Instant::now() < ended, "those that hung do not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(answer(&runtimes.begin(&calls, async { thread_name() })), SOCKET);
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
    assert_eq!(answer(&runtimes.begin(&calls, async { thread_name() })), SOCKET);
}

#[test]
fn nobody_watches_when_there_is_nothing_to_watch() {
    let runtimes = Runtimes::new();
    let calls = runtimes.calls();
    for _ in 0..2 {
        assert_eq!(answer(&runtimes.begin(&calls, async { 1 })), 1);
        let began = Instant::now();
        while calls.places.is_watched() {
            assert!(began.elapsed() < LIMIT, "it is watched for ever");
            std::thread::sleep(Duration::from_millis(5));
        }
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

#[test]
fn c16_a_call_that_began_in_its_place_ends_without_its_caller() {
    let runtimes = Runtimes::new();
    let calls = runtimes.calls();
    let (tell, told) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let call = async move {
        let _ = begin.send(());
        tokio::task::yield_now().await;
        let _ = wait.recv();
        let _ = tell.send(1);
    };
    let in_flight = Pending::default().admit("a").expect("admitted");
    let caller = runtimes.socket.spawn({
        let calls = calls.clone();
        async move { calls.to_its_end(in_flight, call).await }
    });
    begun.recv_timeout(LIMIT).expect("it begins");
    caller.abort();
    assert!(runtimes.driver.block_on(caller).expect_err("aborted").is_cancelled());
    assert!(!calls.tracker().is_empty(), "a shutdown waits for it");
    go_on.send(()).expect("the call is there");
    assert_eq!(told.recv_timeout(LIMIT), Ok(1));
}

#[tokio::test]
async fn c19_a_call_whose_caller_goes_before_its_turn_is_not_made() {
    let (calls, pending) = (Calls::here(), Pending::default());
    let turn = pending.admit("a").expect("admitted").turn().await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let in_flight = pending.admit("a").expect("admitted");
    let caller = tokio::spawn({
        let calls = calls.clone();
        async move { calls.to_its_end(in_flight, async move { tell.send(1) }).await }
    });
    tokio::task::yield_now().await;
    caller.abort();
    assert!(caller.await.expect_err("aborted").is_cancelled());
    drop(turn);
    told.await.expect_err("nobody makes it");
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
    let lost = calls.to_its_end(pending.admit("a").expect("admitted"), async { panic!("as a bug would") });
    assert!(matches!(lost.await, Err(Lost::Ended(error)) if error.is_panic()));
    let next = calls.to_its_end(pending.admit("a").expect("admitted"), async { 1 });
    assert_eq!(next.await.expect("an answer"), 1);
}
