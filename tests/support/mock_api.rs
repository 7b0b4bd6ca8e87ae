//! A mock of the API server that is told beforehand which calls will come, in their order, and what to answer.
//!
//! A call that differs from the script fails the test, and so does one that never comes. It knows nothing of Kubernetes; for a
//! server that behaves like one see `api_server.rs`.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// How long a test waits for what must happen. Reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(20);

const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// One call that must come.
pub struct Expected {
    /// Method, path and query as in `GET /path?a=b`; parameters in any order, the number of `timeoutSeconds` as `N`.
    line: String,
    /// The JSON body and its content type.
    body: Option<(&'static str, Value)>,
    reply: Reply,
}

/// What the mock answers.
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: ReplyBody,
}

enum ReplyBody {
    Whole(String),
    Pieces(mpsc::UnboundedReceiver<Piece>),
    /// The head of the answer never comes.
    Never,
}

enum Piece {
    Bytes(String),
    /// The connection breaks here.
    Break,
}

/// The sending end of a streamed answer. The answer ends in good order when it is dropped.
pub struct Push(mpsc::UnboundedSender<Piece>);

#[derive(Default)]
struct Script {
    expected: VecDeque<Expected>,
    complaints: Vec<String>,
    authorizations: Vec<Option<String>>,
}

#[derive(Clone, Default)]
struct Shared {
    script: Arc<Mutex<Script>>,
    progress: Arc<Notify>,
}

/// The running mock. Ends with [`MockApi::verify`]; forgetting that fails the test.
pub struct MockApi {
    shared: Shared,
    address: SocketAddr,
    server: tokio::task::JoinHandle<()>,
    verified: bool,
}

impl MockApi {
    /// Listens on a port of 127.0.0.1 and expects these calls.
    pub async fn expecting(calls: impl IntoIterator<Item = Expected>) -> Self {
        let shared = Shared::default();
        shared.script.lock().unwrap().expected.extend(calls);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener") });
        Self { shared, address, server, verified: false }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds calls that must come after those expected so far.
    pub fn then(&self, calls: impl IntoIterator<Item = Expected>) {
        self.shared.script.lock().unwrap().expected.extend(calls);
    }

    /// Waits until every expected call has come.
    pub async fn all_called(&self) {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let progress = self.shared.progress.notified();
                if self.shared.script.lock().unwrap().expected.is_empty() {
                    return;
                }
                progress.await;
            }
        });
        if waited.await.is_err() {
            let script = self.shared.script.lock().unwrap();
            let next = script.expected.front().map(|expected| expected.line.clone());
            panic!("this call did not come: {next:?}; complaints: {:#?}", script.complaints);
        }
    }

    /// The `Authorization` header of each call that came.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.shared.script.lock().unwrap().authorizations.clone()
    }

    /// Fails on calls that came unexpected or did not come.
    pub fn verify(mut self) {
        self.verified = true;
        let script = self.shared.script.lock().unwrap();
        let missing: Vec<&String> = script.expected.iter().map(|expected| &expected.line).collect();
        assert!(script.complaints.is_empty(), "unexpected calls: {:#?}", script.complaints);
        assert!(missing.is_empty(), "calls that did not come: {missing:#?}");
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        self.server.abort();
        assert!(self.verified || std::thread::panicking(), "the mock was not asked whether all calls came");
    }
}

impl Expected {
    /// A call without a body.
    pub fn call(line: &str, reply: Reply) -> Self {
        Self { line: normalised(line), body: None, reply }
    }

    /// A call with a JSON body.
    pub fn write(line: &str, content_type: &'static str, body: Value, reply: Reply) -> Self {
        Self { line: normalised(line), body: Some((content_type, body)), reply }
    }

    fn complaint_about(&self, line: &str, content_type: &str, body: &[u8]) -> Option<String> {
        if self.line != line {
            return Some(format!("expected {}, got {line}", self.line));
        }
        match &self.body {
            None if body.is_empty() => None,
            None => Some(format!("{line} came with a body")),
            Some((expected_type, _)) if content_type != *expected_type => {
                Some(format!("{line} came as {content_type}, expected {expected_type}"))
            }
            Some((_, expected)) => {
                let got: Value = serde_json::from_slice(body).unwrap_or_default();
                (got != *expected).then(|| format!("{line} carried {got:#}, expected {expected:#}"))
            }
        }
    }
}

impl Reply {
    /// A whole JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, &body.to_string())
    }

    /// A whole answer of any text.
    pub fn text(status: u16, body: &str) -> Self {
        Self { status, headers: Vec::new(), body: ReplyBody::Whole(body.to_owned()) }
    }

    /// The answer with one more header.
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// An answer of 200 that is sent as the test pushes it.
    pub fn pushed() -> (Push, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Push(sender), Self { status: 200, headers: Vec::new(), body: ReplyBody::Pieces(receiver) })
    }

    /// An answer of 200 made of these lines, ending in good order.
    pub fn lines(lines: impl IntoIterator<Item = Value>) -> Self {
        let (push, reply) = Self::pushed();
        lines.into_iter().for_each(|line| push.line(&line));
        reply
    }

    /// An answer of 200 that begins with `text` and breaks off.
    pub fn broken(text: &str) -> Self {
        let (push, reply) = Self::pushed();
        if !text.is_empty() {
            push.text(text);
        }
        push.break_off();
        reply
    }

    /// The call is taken and never answered.
    pub fn never() -> Self {
        Self { status: 200, headers: Vec::new(), body: ReplyBody::Never }
    }

    async fn into_response(self) -> Response {
        let body = match self.body {
            ReplyBody::Whole(text) => Body::from(text),
            ReplyBody::Pieces(pieces) => {
                Body::from_stream(UnboundedReceiverStream::new(pieces).then(piece_bytes))
            }
            ReplyBody::Never => std::future::pending().await,
        };
        let mut response = Response::builder().status(self.status).header("content-type", "application/json");
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(body).expect("a response")
    }
}

impl Push {
    /// Sends one JSON line.
    pub fn line(&self, line: &Value) {
        self.text(&format!("{line}\n"));
    }

    /// Sends raw text.
    pub fn text(&self, text: &str) {
        // The client may have gone; the test will notice by what it expects.
        let _ = self.0.send(Piece::Bytes(text.to_owned()));
    }

    /// Breaks the connection.
    pub fn break_off(&self) {
        let _ = self.0.send(Piece::Break);
    }
}

async fn piece_bytes(piece: Piece) -> io::Result<Bytes> {
    match piece {
        Piece::Bytes(text) => Ok(Bytes::from(text)),
        Piece::Break => {
            // Whatever was sent before reaches the client only if the server gets to write before the break.
            tokio::time::sleep(Duration::from_millis(1)).await;
            Err(io::Error::other("the script breaks the connection"))
        }
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let line = normalised(&format!("{} {}", parts.method, parts.uri));
    let header =
        |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
    let body = to_bytes(body, REQUEST_BYTES_MAX).await.unwrap_or_default();
    let reply = {
        let mut script = shared.script.lock().unwrap();
        script.authorizations.push(header("authorization"));
        match script.expected.pop_front() {
            None => {
                script.complaints.push(format!("nothing more was expected, got {line}"));
                Reply::text(501, "")
            }
            Some(expected) => {
                let complaint =
                    expected.complaint_about(&line, &header("content-type").unwrap_or_default(), &body);
                script.complaints.extend(complaint);
                expected.reply
            }
        }
    };
    shared.progress.notify_waiters();
    reply.into_response().await
}

/// A request line with its parameters in order and the jittered number taken out.
fn normalised(line: &str) -> String {
    let Some((path, query)) = line.split_once('?') else { return line.to_owned() };
    let mut parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some(("timeoutSeconds", seconds)) if seconds.parse::<u32>().is_ok() => {
                "timeoutSeconds=N".to_owned()
            }
            _ => parameter.to_owned(),
        })
        .collect();
    parameters.sort();
    format!("{path}?{}", parameters.join("&"))
}
