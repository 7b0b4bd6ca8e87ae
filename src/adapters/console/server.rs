//! The answering side, in the serving process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::lock::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::{ANSWER_LENGTH_MAX, QUESTION_LENGTH_MAX, Question, SEEN, WAITS};
use crate::domain::handle::Handle;
use crate::domain::kept::KeptCopy;
use crate::domain::tally::WaitingFor;
use crate::domain::use_cases::confirm::{ConfirmError, Seen};
use crate::domain::use_cases::driver::Driver;
use crate::domain::use_cases::restore::TrashError;
use crate::domain::use_cases::sweeper::Sweeper;

/// How long a caller may take to say what it wants: one caller is served at a time.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Room for what is said beside a list of names.
const PROSE_LENGTH_MAX: usize = 1024;
/// Kept copies that stay of which an answer says why.
const LEFT_TOLD_MAX: usize = 20;

/// Answers callers, one after the other, for as long as it is polled. `sweeper` is `None` where nothing is
/// ever swept.
pub async fn serve(listener: UnixListener, driver: Arc<Driver>, sweeper: Option<Arc<Mutex<Sweeper>>>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Err(error) = answer(stream, &driver, sweeper.as_deref()).await {
                    tracing::warn!(%error, "a person's question could not be answered");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for a person's question could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: UnixStream, driver: &Driver, sweeper: Option<&Mutex<Sweeper>>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(QUESTION_LENGTH_MAX));
    tokio::time::timeout(QUESTION_TIMEOUT, reader.read_line(&mut line)).await??;
    let text = match Question::parse(&line) {
        None => "error the question is not understood: are both of one version?".to_owned(),
        Some(Question::Show) => match sweeper {
            Some(sweeper) => show(&*sweeper.lock().await),
            None => nothing_is_removed(),
        },
        Some(Question::Confirm(seen)) => match sweeper {
            Some(sweeper) => confirm(&mut *sweeper.lock().await, seen).await,
            None => nothing_is_removed(),
        },
        Some(Question::Restore(word)) => restore(driver, &word).await,
        Some(Question::Empty(words)) => empty(driver, &words).await,
        Some(Question::EmptyAll) => match driver.empty_all().await {
            Ok((emptied, left)) => told_emptied(&emptied, &left),
            Err(error) => refused("emptied", &error),
        },
    };
    write.write_all(text.as_bytes()).await?;
    write.write_all(b"\n").await
}

fn nothing_is_removed() -> String {
    "ok nothing waits for a confirmation: with --standalone nothing is removed".to_owned()
}

fn show(sweeper: &Sweeper) -> String {
    match (sweeper.waiting(), sweeper.seen()) {
        (Some(waiting), Some(seen)) => {
            let copies = if waiting == WaitingFor::SweepLimit { sweeper.over_limit() } else { Vec::new() };
            let names = names(&copies);
            format!("ok {WAITS}{}{names}\n{SEEN}{seen}", waiting.sentence())
        }
        (None, _) | (_, None) => "ok nothing waits for a confirmation".to_owned(),
    }
}

async fn confirm(sweeper: &mut Sweeper, seen: Option<Seen>) -> String {
    let copies = sweeper.over_limit();
    match sweeper.confirm(seen).await {
        Ok(waiting) => {
            tracing::warn!(waiting = waiting.as_str(), "a person has confirmed: removals go on");
            let names = if waiting == WaitingFor::SweepLimit { names(&copies) } else { String::new() };
            let sentence = waiting.sentence();
            format!("ok confirmed; removals go on, each with a proof of its own. It was: {sentence}{names}")
        }
        Err(ConfirmError::NothingWaits) => "ok nothing waits for a confirmation".to_owned(),
        Err(error @ (ConfirmError::Changed | ConfirmError::Cluster(_) | ConfirmError::Records(_))) => {
            format!("error not confirmed: {error}")
        }
    }
}

/// How many copies, and each on a line of its own, as far as an answer has room.
fn names(copies: &[Handle]) -> String {
    if copies.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{} copies:", copies.len());
    for (told, handle) in copies.iter().enumerate() {
        if text.len() + handle.as_str().len() + PROSE_LENGTH_MAX > ANSWER_LENGTH_MAX as usize {
            return text + &format!("\n  and {} more", copies.len() - told);
        }
        text += &format!("\n  {handle}");
    }
    text
}

async fn restore(driver: &Driver, word: &str) -> String {
    match driver.restore(word).await {
        Ok(copy) => format!("ok restored {} as the copy of {}", copy.id, copy.handle),
        Err(error) => refused("restored", &error),
    }
}

async fn empty(driver: &Driver, words: &[String]) -> String {
    let (mut emptied, mut left) = (Vec::new(), Vec::new());
    for word in words {
        match driver.empty_one(word).await {
            Ok(copy) => emptied.push(copy),
            Err(error) => left.push(error),
        }
    }
    match (words, left.as_slice()) {
        ([_], [error]) => refused("emptied", error),
        _ => told_emptied(&emptied, &left),
    }
}

/// One is named, of several their number.
fn told_emptied(emptied: &[KeptCopy], left: &[TrashError]) -> String {
    let going = match emptied {
        [copy] => format!("{}, a copy of {}, is being deleted", copy.id, copy.handle),
        copies => format!("{} kept copies are being deleted", copies.len()),
    };
    if left.is_empty() {
        return format!("ok {going}");
    }
    let mut text = format!("error {going}; the others stay:");
    for error in left.iter().take(LEFT_TOLD_MAX) {
        text += &format!("\n  {error}");
    }
    text
}

fn refused(what: &str, error: &TrashError) -> String {
    format!("error not {what}: {error}")
}
