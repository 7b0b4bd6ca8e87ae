//! Requests to the API server and what comes back, with a limit on every wait and every size.
//!
//! The only file that touches HTTP. It repeats nothing, keeps nothing, and logs nothing: not a header, not a body (C47).

use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

use super::api_error::ApiError;
use super::client::{Connection, without_credentials};
use super::lines::Lines;
use super::settings::{ANSWER_BYTES_MAX, Settings};

/// The API server, as requests and answers.
#[derive(Clone)]
pub struct Transport {
    connection: Connection,
    settings: Settings,
}

/// How much of each object an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Its metadata alone: of a list of nodes a hundredth.
    Metadata,
}

impl Extent {
    /// A server that knows no metadata alone answers with all, which reads the same.
    fn accept(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.9"
            }
        }
    }
}

/// How the body of a write is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// POST of a new object.
    Create,
    /// PATCH with a JSON merge patch.
    MergePatch,
}

impl Transport {
    /// A transport over `connection`.
    #[must_use]
    pub fn new(connection: Connection, settings: Settings) -> Self {
        Self { connection, settings }
    }

    /// The limits in force.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// GET, with the whole body, of at most `limit_bytes`.
    ///
    /// # Errors
    /// Every class but `Gone` only where the server says so.
    pub async fn get(&self, path: &str, limit_bytes: usize) -> Result<Vec<u8>, ApiError> {
        self.get_extent(path, Extent::Whole, limit_bytes).await
    }

    /// The same of a list, with as much of each object as is wanted.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_extent(
        &self,
        path: &str,
        extent: Extent,
        limit_bytes: usize,
    ) -> Result<Vec<u8>, ApiError> {
        let mut request = request(Method::GET, path, None, Vec::new())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(extent.accept()));
        let answer = self.send(request).await?;
        self.read_whole(answer.into_body(), limit_bytes).await
    }

    /// GET with a header more, and the whole answer whatever its status: for what the API server passes on, as the proxy of a
    /// pod does. A body that breaks off or is longer than `limit_bytes` is an error all the same.
    ///
    /// # Errors
    /// `Unreachable`, `Timeout`, `Closed`, `Oversize`.
    pub async fn ask(
        &self,
        path: &str,
        header: (HeaderName, HeaderValue),
        limit_bytes: usize,
    ) -> Result<(u16, Vec<u8>), ApiError> {
        let mut request = request(Method::GET, path, None, Vec::new())?;
        request.headers_mut().insert(header.0, header.1);
        let answer = self.answer(request).await?;
        let code = answer.status().as_u16();
        Ok((code, self.read_whole(answer.into_body(), limit_bytes).await?))
    }

    /// GET, with the body as lines that are read one by one.
    ///
    /// # Errors
    /// Where no stream begins. What goes wrong later is told by [`Lines`].
    pub async fn stream(&self, path: &str) -> Result<Lines, ApiError> {
        let answer = self.send(request(Method::GET, path, None, Vec::new())?).await?;
        Ok(Lines::new(answer.into_body(), self.settings.watch_idle_timeout))
    }

    /// POST of a JSON body, with the whole answer, of at most `limit_bytes`: for what is answered in the object, as a review is.
    ///
    /// # Errors
    /// Every class. After `Timeout` and `Closed` the write may have happened.
    pub async fn create(&self, path: &str, body: Vec<u8>, limit_bytes: usize) -> Result<Vec<u8>, ApiError> {
        let answer = self.send(request(Method::POST, path, Some("application/json"), body)?).await?;
        self.read_whole(answer.into_body(), limit_bytes).await
    }

    /// POST or PATCH of a JSON body. What the server says to a success is read only as far as the connection needs it.
    ///
    /// # Errors
    /// Every class. After `Timeout` and `Closed` the write may have happened.
    pub async fn write(&self, kind: WriteKind, path: &str, body: Vec<u8>) -> Result<(), ApiError> {
        let (method, content_type) = match kind {
            WriteKind::Create => (Method::POST, "application/json"),
            WriteKind::MergePatch => (Method::PATCH, "application/merge-patch+json"),
        };
        let answer = self.send(request(method, path, Some(content_type), body)?).await?;
        // The status has told that the write is done; a body that breaks off cannot undo it.
        let _ = self.read_whole(answer.into_body(), ANSWER_BYTES_MAX).await;
        Ok(())
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        timeout(self.settings.answer_timeout, self.connection.client.send(request))
            .await
            .map_err(|_| ApiError::Timeout { waiting_for: "the head of an answer" })?
            .map_err(|error| ApiError::Unreachable {
                why: format!("{}: {}", self.connection.server, without_credentials(&error)),
            })
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let answer = self.answer(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let retry_after = retry_after(answer.headers());
        // An error whose explanation is cut off is still that error.
        let body = self.read_whole(answer.into_body(), ANSWER_BYTES_MAX).await.unwrap_or_default();
        Err(ApiError::from_answer(code, retry_after, &body))
    }

    async fn read_whole(&self, mut body: Body, limit_bytes: usize) -> Result<Vec<u8>, ApiError> {
        let mut whole = Vec::new();
        loop {
            let frame = timeout(self.settings.body_timeout, body.frame())
                .await
                .map_err(|_| ApiError::Timeout { waiting_for: "the rest of an answer" })?;
            match frame {
                None => return Ok(whole),
                Some(Err(_)) => return Err(ApiError::Closed),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if whole.len() + data.len() > limit_bytes {
                        return Err(ApiError::Oversize { limit_bytes });
                    }
                    whole.extend_from_slice(&data);
                }
            }
        }
    }
}

fn request(
    method: Method,
    path: &str,
    content_type: Option<&'static str>,
    body: Vec<u8>,
) -> Result<Request<Body>, ApiError> {
    let mut builder = Request::builder().method(method).uri(path).header(ACCEPT, Extent::Whole.accept());
    // Servers of 1.37 compress watches one event at a time, which common decoders stop at.
    builder = builder.header(ACCEPT_ENCODING, "identity");
    if let Some(content_type) = content_type {
        builder = builder.header(CONTENT_TYPE, content_type);
    }
    builder.body(Body::from(body)).map_err(|_| ApiError::Refused { code: 0, reason: "BadPath".to_owned() })
}

/// The seconds of a `Retry-After`; its other form, a date, is not used by API servers.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// `value` as it may stand in a query: everything but unreserved characters escaped (RFC 3986, 2.3).
#[must_use]
pub fn query_escaped(value: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.push(char::from(HEX[usize::from(byte >> 4)]));
            escaped.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continue_token_survives_the_query() {
        assert_eq!(query_escaped("aZ0-._~"), "aZ0-._~");
        assert_eq!(query_escaped("a+/b=&?ü"), "a%2B%2Fb%3D%26%3F%C3%BC");
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), None);
        headers.insert(RETRY_AFTER, "3".parse().expect("a header"));
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(3)));
        headers.insert(RETRY_AFTER, "Sun, 29 Nov 2026 16:00:00 GMT".parse().expect("a header"));
        assert_eq!(retry_after(&headers), None);
    }
}
