//! The asking side: `per-node confirm` and `per-node trash` themselves. It blocks; the command does nothing else.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use thiserror::Error;

use super::{ANSWER_LENGTH_MAX, Question, socket_path};

/// How long the serving process may take: it asks the API server for a whole list.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AskError {
    #[error("no per-node serves the store {store}: is it running, and is --store the same?")]
    NotServing { store: String },
    #[error("the socket {socket} is for root alone")]
    NotRoot { socket: String },
    #[error("asking over {socket} failed: {source}")]
    Io { socket: String, source: std::io::Error },
    #[error("{answer}")]
    Refused { answer: String },
}

/// Asks the process that serves `store`, and answers what it said.
pub fn ask(store: &Path, question: &Question) -> Result<String, AskError> {
    let path = socket_path(store);
    let socket = path.display().to_string();
    let stream = UnixStream::connect(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            AskError::NotServing { store: store.display().to_string() }
        }
        ErrorKind::PermissionDenied => AskError::NotRoot { socket: socket.clone() },
        _ => AskError::Io { socket: socket.clone(), source },
    })?;
    let answer = exchange(stream, question).map_err(|source| AskError::Io { socket, source })?;
    match answer.split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some((_, text)) => Err(AskError::Refused { answer: text.to_owned() }),
        None => Err(AskError::Refused { answer }),
    }
}

fn exchange(mut stream: UnixStream, question: &Question) -> std::io::Result<String> {
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    writeln!(stream, "{}", question.line())?;
    let mut answer = String::new();
    stream.take(ANSWER_LENGTH_MAX).read_to_string(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}
