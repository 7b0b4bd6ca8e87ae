//! A fake API server of whatever objects a test puts into it, over plain HTTP on 127.0.0.1: what the operator's tool talks to.
//!
//! It gets, lists (by labels and fields, in pages), patches, and passes requests on to pods as kube-apiserver's proxy does:
//! without the caller's credentials. It can be told to deny one verb on one resource, and keeps account of those used.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::objects_exec::{self, Run};

const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What stands behind a pod's port.
#[derive(Clone)]
pub enum Backend {
    /// A real server.
    Address(SocketAddr),
    /// An answer for the request's path with its query, and its headers.
    Answer(Arc<Answer>),
    /// The same, after this time.
    Late(Duration, Arc<Answer>),
    /// The request is taken and never answered.
    Hangs,
    /// Nobody listens.
    Refuses,
}

pub type Answer = dyn Fn(&str, &HeaderMap) -> (u16, String) + Send + Sync;

/// The running server. It stops when it is dropped.
pub struct ObjectsApi {
    shared: Arc<Shared>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Shared(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// By path: `/api/v1/namespaces/NAMESPACE/pods/NAME`.
    objects: BTreeMap<String, Value>,
    pods: BTreeMap<(String, String), Backend>,
    commands: Option<Run>,
    denied: BTreeSet<(String, String)>,
    used: BTreeSet<(String, String)>,
    /// The collections of which nothing but the metadata was asked for.
    named_only: BTreeSet<String>,
    /// What reviews of other people's rights say no to.
    ungranted: BTreeSet<(String, String)>,
    /// Somebody else writes the object just before the next patch of it.
    raced: bool,
}

impl ObjectsApi {
    /// Listens on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::<Shared>::default();
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener") });
        Self { shared, address, task }
    }

    /// A kubeconfig that reaches it, with a token that no proxy may pass on.
    pub fn kubeconfig(&self) -> String {
        // JSON is YAML.
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "contexts": [{ "name": "fake", "context": { "cluster": "fake", "user": "person", "namespace": "default" } }],
            "clusters": [{ "name": "fake", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "person", "user": { "token": "SECRET-OF-A-PERSON" } }],
        })
        .to_string()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts an object under its path, in place of the one there.
    pub fn put(&self, path: &str, object: Value) {
        self.lock().objects.insert(path.to_owned(), object);
    }

    /// Takes an object away.
    pub fn remove(&self, path: &str) {
        self.lock().objects.remove(path);
    }

    /// An object as it is now.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.lock().objects.get(path).cloned()
    }

    /// What stands behind the ports of a pod.
    pub fn serve_pod(&self, namespace: &str, name: &str, backend: Backend) {
        self.lock().pods.insert((namespace.to_owned(), name.to_owned()), backend);
    }

    /// What a command that is run in a pod does.
    pub fn run_commands(&self, run: Run) {
        self.lock().commands = Some(run);
    }

    /// From now on these, and no others, are forbidden: verbs and resources of RBAC.
    pub fn deny(&self, denied: &[(&str, &str)]) {
        let owned = |(verb, resource): &(&str, &str)| ((*verb).to_owned(), (*resource).to_owned());
        self.lock().denied = denied.iter().map(owned).collect();
    }

    /// What nobody but the caller may do, as far as reviews tell.
    pub fn ungrant(&self, verb: &str, resource: &str) {
        self.lock().ungranted.insert((verb.to_owned(), resource.to_owned()));
    }

    /// Just before the next patch somebody else writes the object, as far as its resource version tells.
    pub fn race_next_patch(&self) {
        self.lock().raced = true;
    }

    /// Every verb and resource that was asked for since it was last asked.
    pub fn take_used(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.lock().used)
    }

    /// The collections of which nothing but the metadata was asked for.
    pub fn named_only(&self) -> BTreeSet<String> {
        self.lock().named_only.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }
}

impl Drop for ObjectsApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, REQUEST_BYTES_MAX).await.unwrap_or_default();
    let (verb, resource) = asked(&parts);
    {
        let mut inner = shared.lock();
        // Since 1.35 a command that comes over a web socket, which is a GET, needs the right to create as well.
        let created = (resource == "pods/exec").then(|| ("create".to_owned(), resource.clone()));
        for right in [Some((verb, resource)), created].into_iter().flatten() {
            let denied = inner.denied.contains(&right);
            inner.used.insert(right);
            if denied {
                return status(403, "Forbidden", "");
            }
        }
    }
    if let ["namespaces", _, "pods", pod, "exec"] = segments(parts.uri.path()).as_slice() {
        let command = shared.lock().commands.clone();
        return match command {
            None => status(404, "NotFound", "pods"),
            Some(command) => objects_exec::answer(parts.clone(), (*pod).to_owned(), command),
        };
    }
    if let Some((namespace, pod, rest)) = proxied(&parts) {
        let backend = shared.lock().pods.get(&(namespace, pod)).cloned();
        return match backend {
            None => status(404, "NotFound", "pods"),
            Some(backend) => pass_on(backend, &rest, &parts.headers).await,
        };
    }
    let path = parts.uri.path().to_owned();
    let mut inner = shared.lock();
    match parts.method {
        Method::GET if is_collection(&path) => list(&mut inner, &path, &parts),
        Method::GET => inner.objects.get(&path).map_or_else(|| status(404, "NotFound", ""), object),
        Method::PATCH => patch(&mut inner, &path, &serde_json::from_slice(&body).unwrap_or_default()),
        Method::POST if segments(&path) == ["subjectaccessreviews"] => {
            object(&review(&inner, serde_json::from_slice(&body).unwrap_or_default()))
        }
        _ => status(405, "MethodNotAllowed", ""),
    }
}

/// Whether somebody else has a right: all do but to what was taken from them.
fn review(inner: &Inner, mut review: Value) -> Value {
    let asked = &review["spec"]["resourceAttributes"];
    let text = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
    let allowed = !inner.ungranted.contains(&(text("verb"), text("resource")));
    review["status"] = json!({ "allowed": allowed });
    review
}

/// The path's parts behind group and version.
fn segments(path: &str) -> Vec<&str> {
    let all: Vec<&str> = path.trim_matches('/').split('/').collect();
    let head = if all.first() == Some(&"apis") { 3 } else { 2 };
    all.into_iter().skip(head).collect()
}

/// Verb and resource as RBAC names them.
fn asked(parts: &Parts) -> (String, String) {
    let path = parts.uri.path();
    let resource = match segments(path).as_slice() {
        ["namespaces", _, resource, _, sub, ..] => format!("{resource}/{sub}"),
        ["namespaces", _, resource, ..] => (*resource).to_owned(),
        [resource, ..] => (*resource).to_owned(),
        [] => String::new(),
    };
    let verb = match parts.method {
        Method::GET if resource.contains('/') => "get",
        Method::GET if is_collection(path) => "list",
        Method::GET => "get",
        Method::PATCH => "patch",
        Method::POST => "create",
        _ => "other",
    };
    (verb.to_owned(), resource)
}

fn is_collection(path: &str) -> bool {
    matches!(segments(path).as_slice(), [_] | ["namespaces", _, _])
}

/// Namespace, pod and the path behind it, of a request to a pod.
fn proxied(parts: &Parts) -> Option<(String, String, String)> {
    let found = segments(parts.uri.path());
    let ["namespaces", namespace, "pods", pod, "proxy", rest @ ..] = found.as_slice() else { return None };
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let pod = pod.split(':').next().unwrap_or_default();
    Some(((*namespace).to_owned(), pod.to_owned(), format!("/{}{query}", rest.join("/"))))
}

async fn pass_on(backend: Backend, path: &str, headers: &HeaderMap) -> Response {
    // The real one takes the caller's credentials off.
    let mut headers = headers.clone();
    headers.remove("authorization");
    let (code, body) = match backend {
        Backend::Hangs => return std::future::pending().await,
        Backend::Refuses => return status(503, "ServiceUnavailable", ""),
        Backend::Answer(answer) => answer(path, &headers),
        Backend::Late(after, answer) => {
            tokio::time::sleep(after).await;
            answer(path, &headers)
        }
        Backend::Address(address) => match fetch(address, path, &headers).await {
            Ok(answer) => answer,
            Err(_) => return status(503, "ServiceUnavailable", ""),
        },
    };
    let code = StatusCode::from_u16(code).expect("a status");
    Response::builder().status(code).body(Body::from(body)).expect("a response")
}

async fn fetch(address: SocketAddr, path: &str, headers: &HeaderMap) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let mut request = format!("GET {path} HTTP/1.1\r\nhost: pod\r\nconnection: close\r\n");
    for (name, value) in headers.iter().filter(|(name, _)| !["host", "connection"].contains(&name.as_str())) {
        request += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let code = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(502);
    Ok((code, body.to_owned()))
}

fn wants_metadata_alone(headers: &HeaderMap) -> bool {
    let accepted = headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.starts_with("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
}

/// One page: those of the collection that the selectors select.
fn list(inner: &mut Inner, path: &str, parts: &Parts) -> Response {
    let metadata_alone = wants_metadata_alone(&parts.headers);
    if metadata_alone {
        inner.named_only.extend(segments(path).last().map(|name| (*name).to_owned()));
    }
    let query = |name: &str| {
        let pairs = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| unescaped(value)).next()
    };
    let of = segments(path);
    let in_collection = |object: &str| match (of.as_slice(), segments(object).as_slice()) {
        ([wanted], [kind, _]) | ([wanted], ["namespaces", _, kind, _]) => wanted == kind,
        (["namespaces", space, wanted], ["namespaces", other, kind, _]) => space == other && wanted == kind,
        _ => false,
    };
    let selected = |object: &&Value| {
        selects(&query("labelSelector").unwrap_or_default(), |key| object["metadata"]["labels"][key].clone())
            && selects(&query("fieldSelector").unwrap_or_default(), |key| {
                object.pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or_default()
            })
    };
    let all: Vec<&Value> = inner
        .objects
        .iter()
        .filter(|(at, _)| in_collection(at))
        .map(|(_, object)| object)
        .filter(selected)
        .collect();
    let from: usize = query("continue").and_then(|token| token.parse().ok()).unwrap_or(0);
    let limit: usize = query("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let shown = |object: &Value| {
        if metadata_alone { json!({ "metadata": object["metadata"] }) } else { object.clone() }
    };
    let page: Vec<Value> = all.iter().skip(from).take(limit).map(|object| shown(object)).collect();
    let next = from + page.len();
    let token = if next < all.len() { next.to_string() } else { String::new() };
    object(&json!({ "kind": "List", "apiVersion": "v1", "metadata": { "continue": token }, "items": page }))
}

/// `key=value,other=value`.
fn selects(selector: &str, of: impl Fn(&str) -> Value) -> bool {
    let mut wanted = selector.split(',').filter(|part| !part.is_empty());
    wanted.all(|part| part.split_once('=').is_some_and(|(key, value)| of(key) == value))
}

/// A merge patch. UID and resource version, where it carries them, must be those of the object.
fn patch(inner: &mut Inner, path: &str, patch: &Value) -> Response {
    let raced = std::mem::take(&mut inner.raced);
    let Some(found) = inner.objects.get_mut(path) else { return status(404, "NotFound", "") };
    if raced {
        found["metadata"]["resourceVersion"] = json!("raced");
    }
    for guard in ["uid", "resourceVersion"] {
        let wanted = &patch["metadata"][guard];
        if !wanted.is_null() && *wanted != found["metadata"][guard] {
            return status(409, "Conflict", "");
        }
    }
    merge(found, patch);
    object(found)
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else { return *target = patch.clone() };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().expect("an object").remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn object(object: &Value) -> Response {
    let response = Response::builder().header("content-type", "application/json");
    response.body(Body::from(object.to_string())).expect("a response")
}

fn status(code: u16, reason: &str, kind: &str) -> Response {
    let mut response = object(&json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": "told by the fake API server", "details": { "kind": kind },
    }));
    *response.status_mut() = StatusCode::from_u16(code).expect("a status");
    response
}

pub(crate) fn unescaped(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
