//! `ui`: the whole cluster to look at in a browser. A small HTTP server on 127.0.0.1 with one page and what that page shows;
//! it has its caller's rights, changes nothing, and ends with the command.
//!
//! The page and its parts are the files beside this one. docs/threat-model.md says from whom the server guards itself.

mod browser;
mod flags;
mod guard;
mod looks;
mod page;
mod token;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use per_node::adapters::http::listener;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use flags::UiFlags;
use guard::{Refused, Wanted};
use looks::Looks;
use token::Token;

use crate::cli::ReachFlags;
use crate::connect::connect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::status::gather::Question;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
/// The longest life of a connection, which serves one request: a wait for the next look, and its answer.
const CONNECTION_LIFE: Duration = Duration::from_secs(60);

struct Server {
    token: Token,
    looks: Looks,
}

/// Serves until it is interrupted.
pub async fn run(reach: &ReachFlags, flags: UiFlags) -> Result<Exit, Failure> {
    let api = connect(reach).await?;
    let question = Question {
        driver_name: reach.driver_name.clone(),
        namespace: flags.plugin.namespace.clone(),
        volume: None,
        node_deadline: flags.asking.node_deadline,
        parallel: flags.asking.parallel.get(),
        has_progress: false,
    };
    let busy = |error: std::io::Error| Failure::Local { what: "the port", why: error.to_string() };
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, flags.port)).await.map_err(busy)?;
    let server = Arc::new(Server { token: Token::random()?, looks: Looks::new(flags.every) });
    let address = format!("http://{}/{}/", port.local_addr().map_err(busy)?, server.token.reveal());
    output::print(&format!("{address}\n"))?;
    output::say("whoever has this address can look, until Ctrl-C ends it");
    let _opened = if flags.open { open(&address) } else { None };
    let router = Router::new().fallback(answer).with_state(server.clone());
    let until_interrupted = CancellationToken::new();
    tokio::select! {
        () = listener::serve(&port, &router, CONNECTION_LIFE, &until_interrupted) => {}
        () = server.looks.keep_looking(&api, &question) => {}
    }
    Ok(Exit::Complete)
}

/// A browser that does not open is no reason to end: the address is printed.
fn open(address: &str) -> Option<browser::Opened> {
    browser::open(address).inspect_err(|failure| output::say(&failure.to_string())).ok()
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> Response {
    let judged = guard::judge(&server.token, request.method(), request.uri(), request.headers());
    match judged {
        Ok(Wanted::Page) => match Token::random() {
            Ok(nonce) => respond(StatusCode::OK, HTML, page::page(&nonce).into(), Some(&nonce)),
            Err(failure) => text(StatusCode::INTERNAL_SERVER_ERROR, &failure.to_string()),
        },
        Ok(Wanted::State { after }) => match server.looks.next(after).await {
            Some(json) => respond(StatusCode::OK, JSON, json.into(), None),
            None => respond(StatusCode::NO_CONTENT, JSON, Body::empty(), None),
        },
        Err(refused) => refuse(refused),
    }
}

fn refuse(refused: Refused) -> Response {
    let why = refused.to_string();
    match refused {
        Refused::Host => text(StatusCode::MISDIRECTED_REQUEST, &why),
        Refused::Path => text(StatusCode::NOT_FOUND, &why),
        Refused::Method => {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, &why);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
    }
}

fn text(code: StatusCode, why: &str) -> Response {
    respond(code, TEXT, format!("{why}\n").into(), None)
}

fn respond(code: StatusCode, kind: &'static str, body: Body, nonce: Option<&Token>) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    *response.headers_mut() = page::headers(nonce);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
