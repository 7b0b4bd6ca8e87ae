//! The fake API server's side of exec: a web socket whose messages begin with the number of a channel, as kube-apiserver has it
//! for `v4.channel.k8s.io`. What a command says is the test's to decide.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::SinkExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::objects_api::unescaped;

const PROTOCOL: &str = "v4.channel.k8s.io";
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

/// What a command in a pod says, by pod and words: exit code, standard output, standard error. `None` never ends.
pub type Run = Arc<dyn Fn(&str, &[String]) -> Option<(i32, String, String)> + Send + Sync>;

/// Takes the connection over and runs the command there.
pub fn answer(mut parts: Parts, pod: String, run: Run) -> Response {
    let key = parts.headers.get("sec-websocket-key").expect("a web socket").as_bytes().to_vec();
    let upgrade = parts.extensions.remove::<OnUpgrade>().expect("a connection that can be taken over");
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let words: Vec<String> = pairs
        .filter(|(name, _)| *name == "command")
        .map(|(_, word)| unescaped(&word.replace('+', " ")))
        .collect();
    tokio::spawn(async move {
        let connection = upgrade.await.expect("the connection");
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(connection), Role::Server, None).await;
        match run(&pod, &words) {
            Some(ended) => tell(socket, ended).await,
            None => std::future::pending().await,
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("upgrade", "websocket")
        .header("connection", "Upgrade")
        .header("sec-websocket-accept", derive_accept_key(&key))
        .header("sec-websocket-protocol", PROTOCOL)
        .body(Body::empty())
        .expect("a response")
}

async fn tell(
    mut socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
    (code, out, err): (i32, String, String),
) {
    for (channel, text) in [(STDOUT, out), (STDERR, err), (STATUS, status(code).to_string())] {
        let mut message = vec![channel];
        message.extend_from_slice(text.as_bytes());
        // Nobody is there any more where this fails.
        let _ = socket.send(Message::Binary(message.into())).await;
    }
    let _ = socket.close(None).await;
}

fn status(code: i32) -> Value {
    if code == 0 {
        return json!({ "metadata": {}, "status": "Success" });
    }
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: {code}"),
        "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
    })
}
