//! `ui` as a process: who is answered and who is not, what every answer says to a browser, what the page is told of a cluster
//! with hostile names and mute nodes, and what that costs the cluster. How the page looks is for tests/browser.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::cluster::{copy, healthy, holder, plugin, refusal, report, tells, volume};
use crate::objects_api::{Backend, ObjectsApi};
use crate::rights::documented;
use crate::tool::{command, run};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running `ui`.
struct Ui {
    process: Child,
    /// Host and port.
    host: String,
    /// The path with the token, which ends with a slash.
    path: String,
    _kubeconfig: tempfile::NamedTempFile,
}

/// An answer.
struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(told, _)| told.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Ui {
    async fn start(api: &ObjectsApi, arguments: &[&str], path: &str) -> Self {
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), api.kubeconfig()).expect("written");
        let mut command = command(kubeconfig.path(), &[&["ui"], arguments].concat());
        let mut process = command.env("PATH", path).spawn().expect("it runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let line =
            tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("an address").expect("read");
        let address = line.expect("a line");
        let (host, token) =
            address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        Self { process, host: host.to_owned(), path: format!("/{token}"), _kubeconfig: kubeconfig }
    }

    async fn of(api: &ObjectsApi) -> Self {
        Self::start(api, &["--node-deadline", "1s"], "/nowhere").await
    }

    async fn ask(&self, method: &str, path: &str, host: &str) -> Answer {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n\r\n");
        let exchange = async {
            let mut stream = TcpStream::connect(&self.host).await.expect("it listens");
            stream.write_all(request.as_bytes()).await.expect("sent");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.expect("an answer");
            String::from_utf8(answer).expect("UTF-8")
        };
        let answer = tokio::time::timeout(PATIENCE, exchange).await.expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        Answer { code, head: head.to_owned(), body: body.to_owned() }
    }

    /// What the page asks for, and as it does.
    async fn get(&self, page: &str) -> Answer {
        self.ask("GET", &format!("{}{page}", self.path), &self.host).await
    }

    async fn state(&self) -> Value {
        let answer = self.get("state").await;
        assert_eq!(answer.code, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// Ends it as Ctrl-C does, and tells its exit code.
    async fn interrupt(&mut self) -> Option<i32> {
        let id = self.process.id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill");
        assert!(sent.success());
        let ended = tokio::time::timeout(PATIENCE, self.process.wait()).await.expect("it ends");
        ended.expect("it ran").code()
    }
}

#[tokio::test]
async fn the_printed_address_has_the_page_and_the_cluster_and_ctrl_c_ends_it() {
    let api = healthy().await;
    let mut ui = Ui::of(&api).await;
    assert!(ui.host.starts_with("127.0.0.1:"), "{}", ui.host);
    assert!(ui.path.len() >= 2 + 32, "128 bits in hexadecimal: {}", ui.path);
    let page = ui.get("").await;
    assert_eq!((page.code, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.body.ends_with("</html>\n") && page.body.contains("role=\"grid\""));
    let state = ui.state().await;
    assert_eq!((&state["kind"], &state["look"]), (&"UiState".into(), &1.into()));
    assert_eq!(state["status"]["volumes"][0]["copies"][0]["holders"][0]["pod"], "runner-0");
    let head = ui.ask("HEAD", &ui.path, &ui.host).await;
    assert_eq!((head.code, head.body.as_str()), (200, ""));
    assert_eq!(ui.interrupt().await, Some(130));
    assert!(TcpStream::connect(&ui.host).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn whoever_has_not_the_token_learns_nothing() {
    let api = healthy().await;
    let ui = Ui::of(&api).await;
    let last = ui.path.len() - 2;
    let digit = if ui.path[last..].starts_with('0') { "1" } else { "0" };
    let wrong = format!("{}{digit}/", &ui.path[..last]);
    for path in [
        "/",
        "/state",
        "/favicon.ico",
        ui.path.trim_end_matches('/'),
        &wrong,
        &format!("{wrong}state"),
        "//state",
    ] {
        let answer = ui.ask("GET", path, &ui.host).await;
        assert_eq!(answer.code, 404, "{path}");
        assert!(answer.body.starts_with("nothing is here"), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_page_whose_name_was_made_to_point_here_learns_nothing() {
    let api = healthy().await;
    let ui = Ui::of(&api).await;
    let port = ui.host.rsplit(':').next().expect("a port");
    for host in
        ["evil.example", &format!("evil.example:{port}"), &format!("[::1]:{port}"), "127.0.0.1.evil.example"]
    {
        let answer = ui.ask("GET", &format!("{}state", ui.path), host).await;
        assert_eq!(answer.code, 421, "{host}");
        assert!(!answer.body.contains("build-cache"), "{host}: {}", answer.body);
    }
    let forwarded = ui.ask("GET", &ui.path, "localhost:9999").await;
    assert_eq!(forwarded.code, 200, "ssh may have forwarded the port");
}

#[tokio::test]
async fn other_machines_do_not_reach_it() {
    let api = healthy().await;
    let ui = Ui::of(&api).await;
    let port = ui.host.rsplit(':').next().expect("a port");
    // Another address of this same machine: what listens on all of them would answer.
    assert!(TcpStream::connect(format!("127.0.0.2:{port}")).await.is_err());
}

#[tokio::test]
async fn nothing_can_be_changed() {
    let api = healthy().await;
    let ui = Ui::of(&api).await;
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
        let answer = ui.ask(method, &format!("{}state", ui.path), &ui.host).await;
        assert_eq!((answer.code, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
}

#[tokio::test]
async fn every_answer_tells_the_browser_to_keep_it_to_itself() {
    let api = healthy().await;
    let ui = Ui::of(&api).await;
    let wrong = ui.ask("GET", "/", &ui.host).await;
    let method = ui.ask("POST", &ui.path, &ui.host).await;
    let host = ui.ask("GET", &ui.path, "evil.example").await;
    let (page, again) = (ui.get("").await, ui.get("").await);
    for answer in [&page, &ui.get("state").await, &wrong, &method, &host] {
        for (name, value) in [
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}: {}", answer.head);
        }
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        let shared = answer.head.to_lowercase().contains("access-control");
        assert!(!shared, "no other origin reads it: {}", answer.head);
    }
    let policy = |answer: &Answer| answer.header("content-security-policy").expect("a policy").to_owned();
    assert_ne!(policy(&page), policy(&again), "each page has a nonce of its own");
}

#[tokio::test]
async fn names_that_are_markup_come_as_text_of_json_and_are_in_no_page() {
    let api = ObjectsApi::start().await;
    let hostile = "<script>alert(1)</script>";
    volume(&api, "evil", hostile, "Bound", Some("Bound"));
    let mut held = copy(hostile, 1, 1);
    held.holders = vec![holder(hostile, None)];
    let mut told = report("node-1", vec![held]);
    told.refusals =
        vec![refusal(hostile, "</script><img src=x onerror=alert(1)>", 1, "2026-11-30T02:59:00Z")];
    plugin(&api, "node-1", "Running", tells(told));
    let ui = Ui::of(&api).await;
    let answer = ui.get("state").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let state: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(state["status"]["volumes"][0]["copies"][0]["holders"][0]["pod"], hostile);
    assert!(!ui.get("").await.body.contains("alert(1)"), "nothing of the cluster is written into the page");
}

#[tokio::test]
async fn a_node_that_fails_is_named_and_the_rest_is_shown() {
    let api = healthy().await;
    plugin(&api, "node-3", "Running", Backend::Hangs);
    plugin(&api, "node-4", "Running", Backend::Refuses);
    let state = Ui::of(&api).await.state().await;
    let missing = state["status"]["missing"].to_string();
    assert!(missing.contains("node-3: no answer within 1s") && missing.contains("node-4: "), "{missing}");
    assert_eq!(state["status"]["volumes"].as_array().map(Vec::len), Some(4), "{state}");
    assert_eq!(state["status"]["nodes"][0]["at"], "2026-11-30T03:00:00Z");
}

#[tokio::test]
async fn all_pages_share_a_look_and_without_a_page_the_cluster_is_left_alone() {
    let api = ObjectsApi::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let (counted, answer) = (asked.clone(), serde_json::to_string(&report("node-1", vec![])).expect("JSON"));
    let backend = Backend::Answer(Arc::new(move |_: &str, _: &axum::http::HeaderMap| {
        counted.fetch_add(1, Ordering::SeqCst);
        (200, answer.clone())
    }));
    plugin(&api, "node-1", "Running", backend);
    let ui = Ui::start(&api, &["--every", "1h"], "/nowhere").await;
    ui.get("").await;
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nobody has asked for the state");
    let (first, second, third) = tokio::join!(ui.state(), ui.state(), ui.state());
    assert_eq!([&first["look"], &second["look"], &third["look"]], [&Value::from(1); 3]);
    assert_eq!(ui.state().await["look"], 1, "it is not yet old");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn it_needs_the_documented_rights_and_names_each_one_that_is_missing() {
    let api = healthy().await;
    api.take_used();
    Ui::of(&api).await.state().await;
    let documented = documented("ui");
    assert_eq!(api.take_used(), documented);
    for (verb, resource) in &documented {
        api.deny(&[(verb, resource)]);
        let state = Ui::of(&api).await.state().await;
        assert!(state.to_string().contains(&format!("{verb} {resource}")), "{verb} {resource}: {state}");
    }
    api.deny(&[("list", "persistentvolumes"), ("list", "pods")]);
    let state = Ui::of(&api).await.state().await;
    assert!(state["failure"].as_str().is_some_and(|why| why.contains("persistentvolumes")), "{state}");
}

#[tokio::test]
async fn a_port_that_is_taken_and_looks_too_often_are_refused() {
    let api = healthy().await;
    let ui = Ui::of(&api).await;
    let port = ui.host.rsplit(':').next().expect("a port");
    let taken = run(&api, &["ui", "--port", port]).await;
    assert_eq!((taken.code, taken.out.as_str()), (1, ""), "{}", taken.err);
    assert!(taken.err.contains("the port: "), "{}", taken.err);
    assert_eq!(run(&api, &["ui", "--every", "1s"]).await.code, 2);
}

/// A desktop whose opener notes what it was started with, and what it was given.
fn desktop(directory: &Path) {
    let opener = directory.join("xdg-open");
    let script = "#!/bin/sh\nhere=${0%/*}\nread -r text < \"$1\"\necho \"$1\" \"$text\" > $here/part\nPATH=/bin mv $here/part $here/told\n";
    std::fs::write(&opener, script).expect("written");
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("mode");
}

#[tokio::test]
async fn the_browser_is_opened_without_the_address_in_anybodys_sight() {
    let directory = tempfile::tempdir().expect("a directory");
    desktop(directory.path());
    let api = healthy().await;
    let mut ui = Ui::start(&api, &["--open"], directory.path().to_str().expect("UTF-8")).await;
    let told = directory.path().join("told");
    let wait = async {
        while !told.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it was opened");
    let told = std::fs::read_to_string(told).expect("told");
    let (file, text) = told.split_once(' ').expect("an argument");
    assert!(!file.contains(ui.path.trim_matches('/')), "an argument can be read by everybody: {file}");
    assert!(text.contains(&format!("url=http://{}{}\"", ui.host, ui.path)), "{text}");
    let mode = std::fs::metadata(file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    ui.interrupt().await;
    assert!(!Path::new(file).exists(), "it goes with the server");
}
