//! The answering side, in the serving process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::lock::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::{LINE_LENGTH_MAX, Question};
use crate::domain::use_cases::confirm::ConfirmError;
use crate::domain::use_cases::sweeper::Sweeper;

/// How long a caller may take to say what it wants: one caller is served at a time.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers callers, one after the other, for as long as it is polled. `sweeper` is `None` where nothing is
/// ever swept.
pub async fn serve(listener: UnixListener, sweeper: Option<Arc<Mutex<Sweeper>>>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Err(error) = answer(stream, sweeper.as_deref()).await {
                    tracing::warn!(%error, "a confirmation could not be answered");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for a confirmation could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: UnixStream, sweeper: Option<&Mutex<Sweeper>>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(LINE_LENGTH_MAX));
    tokio::time::timeout(QUESTION_TIMEOUT, reader.read_line(&mut line)).await??;
    let text = match (Question::parse(&line), sweeper) {
        (None, _) => "error the question is not understood: are both of one version?".to_owned(),
        (Some(_), None) => {
            "ok nothing waits for a confirmation: with --standalone nothing is removed".to_owned()
        }
        (Some(Question::Show), Some(sweeper)) => show(&*sweeper.lock().await),
        (Some(Question::Confirm), Some(sweeper)) => confirm(&mut *sweeper.lock().await).await,
    };
    write.write_all(text.as_bytes()).await?;
    write.write_all(b"\n").await
}

fn show(sweeper: &Sweeper) -> String {
    match sweeper.waiting() {
        Some(waiting) => format!("ok removals wait for a confirmation: {}", waiting.sentence()),
        None => "ok nothing waits for a confirmation".to_owned(),
    }
}

async fn confirm(sweeper: &mut Sweeper) -> String {
    match sweeper.confirm().await {
        Ok(waiting) => {
            tracing::warn!(waiting = waiting.as_str(), "a person has confirmed: removals go on");
            format!(
                "ok confirmed; removals go on, each with a proof of its own. It was: {}",
                waiting.sentence()
            )
        }
        Err(ConfirmError::NothingWaits) => "ok nothing waits for a confirmation".to_owned(),
        Err(error @ (ConfirmError::Cluster(_) | ConfirmError::Records(_))) => {
            format!("error not confirmed: {error}")
        }
    }
}
