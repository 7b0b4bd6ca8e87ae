//! A body as lines, one in memory at a time (C48).
//!
//! A line is handed out only when its newline has come: half a line at the end of a body is a connection that broke, never
//! an object.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

use super::api_error::ApiError;
use super::settings::LINE_BYTES_MAX;

/// The buffer is given back to the allocator when a long line made it grow beyond this.
const BUFFER_KEPT_BYTES: usize = 256 * 1024;

/// The lines of a body, with a limit on the silence between two pieces of it.
pub struct Lines {
    body: Body,
    idle_timeout: Duration,
    buffer: Vec<u8>,
    /// Where the part of the buffer begins that has not been handed out.
    start: usize,
}

impl Lines {
    /// The lines of `body`; a silence longer than `idle_timeout` ends them with an error.
    #[must_use]
    pub fn new(body: Body, idle_timeout: Duration) -> Self {
        Self { body, idle_timeout, buffer: Vec::new(), start: 0 }
    }

    /// The next line without its newline, or `None` where the body ended behind a newline. Empty lines are passed over.
    ///
    /// Cancelling it loses nothing: what had come stays in the buffer.
    ///
    /// # Errors
    /// `Timeout` after too long a silence, `Closed` where the connection broke or the last line is half,
    /// `Oversize` where a line is longer than [`LINE_BYTES_MAX`].
    pub async fn next(&mut self) -> Result<Option<&[u8]>, ApiError> {
        loop {
            let Some(end) = self.fill_line().await? else { return Ok(None) };
            let line = self.start..end;
            self.start = end + 1;
            if !line.is_empty() {
                return Ok(Some(&self.buffer[line]));
            }
        }
    }

    /// Reads until the rest of the buffer has a newline and says where the first one is.
    async fn fill_line(&mut self) -> Result<Option<usize>, ApiError> {
        let mut searched = self.start;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                return Ok(Some(searched + at));
            }
            // Only the beginning of one line is left: moving it is cheaper than moving the rest for every line.
            self.discard_taken();
            searched = self.buffer.len();
            if searched > LINE_BYTES_MAX {
                return Err(ApiError::Oversize { limit_bytes: LINE_BYTES_MAX });
            }
            let frame = timeout(self.idle_timeout, self.body.frame())
                .await
                .map_err(|_| ApiError::Timeout { waiting_for: "the next event of a stream" })?;
            match frame {
                None if self.buffer.is_empty() => return Ok(None),
                None | Some(Err(_)) => return Err(ApiError::Closed),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    fn discard_taken(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.capacity() > BUFFER_KEPT_BYTES && self.buffer.len() < BUFFER_KEPT_BYTES {
            self.buffer.shrink_to(BUFFER_KEPT_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(text: &str) -> (Vec<String>, Result<(), ApiError>) {
        let mut lines = Lines::new(Body::from(text.as_bytes().to_vec()), Duration::from_secs(5));
        let mut seen = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => seen.push(String::from_utf8_lossy(line).into_owned()),
                Ok(None) => return (seen, Ok(())),
                Err(error) => return (seen, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn whole_lines_are_handed_out_and_empty_ones_passed_over() {
        assert_eq!(lines_of("{a}\n\n{b}\n").await, (vec!["{a}".into(), "{b}".into()], Ok(())));
        assert_eq!(lines_of("").await, (vec![], Ok(())));
    }

    #[tokio::test]
    async fn half_a_line_is_a_broken_connection() {
        assert_eq!(lines_of("{a}\n{b").await, (vec!["{a}".into()], Err(ApiError::Closed)));
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused() {
        let (seen, end) = lines_of(&"x".repeat(LINE_BYTES_MAX + 1)).await;
        assert_eq!((seen.len(), end), (0, Err(ApiError::Oversize { limit_bytes: LINE_BYTES_MAX })));
    }
}
