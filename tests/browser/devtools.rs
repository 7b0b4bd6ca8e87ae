//! A browser without a window, and one page of it, by the DevTools protocol over a web socket: as much of it as the cases need.
//! It notes what the page complains of and whom it asks, and is ended with the tests.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// What nothing takes longer than, but what never comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a page that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What the browsers of the Chromium family are called.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The browser of this machine: `PER_NODE_BROWSER`, or the first on the `PATH`.
pub fn executable() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PER_NODE_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&path).flat_map(|directory| NAMES.map(|name| directory.join(name)));
    all.into_iter().find(|file| file.is_file())
}

/// A browser that runs until this is dropped.
pub struct Browser {
    _process: Child,
    _profile: TempDir,
    /// Host and port, and the path of the socket.
    host: String,
    path: String,
}

impl Browser {
    pub async fn start() -> Self {
        let profile = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(executable().expect("a browser"));
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--no-first-run", "--disable-background-networking", "--disable-component-update"]);
        command.args(["--disable-sync", "--remote-debugging-port=0"]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        command.env("HOME", profile.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("a browser");
        let mut lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let listening = async {
            loop {
                let line = lines.next_line().await.expect("readable").expect("it says where it listens");
                if let Some((_, address)) = line.split_once("DevTools listening on ws://") {
                    return address.trim().to_owned();
                }
            }
        };
        let address = tokio::time::timeout(PATIENCE, listening).await.expect("it starts");
        // It complains of what a machine without a desktop lacks for as long as it runs.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let (host, path) = address.split_once('/').expect("an address");
        Self { host: host.to_owned(), path: path.to_owned(), _process: process, _profile: profile }
    }

    /// A page in a window of its own, with nothing of the others'.
    pub async fn page(&self) -> Page {
        let stream = TcpStream::connect(&self.host).await.expect("it listens");
        let (socket, _) =
            client_async(format!("ws://{}/{}", self.host, self.path), stream).await.expect("a web socket");
        let mut page = Page { socket, session: None, calls: 0, complaints: Vec::new(), asked: Vec::new() };
        let context = page.call("Target.createBrowserContext", json!({ "disposeOnDetach": true })).await;
        let context = &context["browserContextId"];
        let target =
            json!({ "url": "about:blank", "browserContextId": context, "width": 1280, "height": 800 });
        let target = page.call("Target.createTarget", target).await;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = page.call("Target.attachToTarget", attach).await;
        page.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            page.call(&format!("{domain}.enable"), json!({})).await;
        }
        // Other cases have their windows at the same time.
        page.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        page
    }
}

/// One page.
pub struct Page {
    socket: WebSocketStream<TcpStream>,
    session: Option<String>,
    calls: u64,
    /// Errors and warnings of the console, scripts that failed, what the policy refused.
    pub complaints: Vec<String>,
    /// Every address it has asked.
    pub asked: Vec<String>,
}

impl Page {
    /// One call of the protocol, and its answer.
    pub async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let number = self.calls;
        let mut call = json!({ "id": number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(call.to_string())).await.expect("sent");
        let answered = async {
            loop {
                let message = self.socket.next().await.expect("the browser runs").expect("a message");
                let Message::Text(text) = message else { continue };
                let message: Value = serde_json::from_str(text.as_str()).expect("JSON");
                if message["id"] == number {
                    return message;
                }
                note(&message, &mut self.complaints, &mut self.asked);
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answered).await.expect("it answers");
        assert_eq!(answer["error"], Value::Null, "{method}");
        answer["result"].clone()
    }

    /// Opens `address`.
    pub async fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address })).await;
    }

    /// What an expression is on the page.
    pub async fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked).await;
        let failed = &answer["exceptionDetails"];
        assert_eq!(*failed, Value::Null, "{expression}: {failed}");
        answer["result"]["value"].clone()
    }

    /// Waits until it is true.
    pub async fn until(&mut self, expression: &str) {
        let came = async {
            while self.evaluate(&format!("Boolean({expression})")).await != Value::Bool(true) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(PATIENCE, came).await.is_err() {
            let text = self.evaluate("document.body.innerText").await;
            panic!("{expression} never came; the page: {text}; it complains of {:?}", self.complaints);
        }
    }

    /// A key, as a person presses it; with Ctrl where it begins with `^`.
    pub async fn press(&mut self, key: &str) {
        let (key, modifiers) = key.strip_prefix('^').map_or((key, 0), |key| (key, 2));
        let text = if key.chars().count() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "text": text, "modifiers": modifiers });
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// A window of this size, of a desktop or a phone, in light or dark.
    pub async fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        self.call("Emulation.setEmulatedMedia", features).await;
    }

    /// Forgets what the browser says of this machine's network: it cuts requests off when an interface comes or goes, as those of
    /// other pods do on a node, and the page then complains once of each.
    #[allow(dead_code, reason = "where no cluster is there is no such interface")]
    pub fn forgive_changes_of_the_network(&mut self) {
        let all = self.complaints.len();
        self.complaints.retain(|complaint| !complaint.contains("net::ERR_NETWORK_CHANGED"));
        for _ in self.complaints.len()..all {
            let fetch =
                self.complaints.iter().position(|complaint| complaint.contains("TypeError: Failed to fetch"));
            fetch.map(|at| self.complaints.remove(at));
        }
    }

    /// The page complains of nothing, and has asked nobody but the server at `address`.
    pub fn is_at_peace_with(&self, address: &str) {
        assert_eq!(self.complaints, Vec::<String>::new());
        let elsewhere: Vec<_> =
            self.asked.iter().filter(|asked| !asked.starts_with(address) && *asked != "data:,").collect();
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
        assert!(self.asked.iter().any(|asked| asked.contains("/state?after=")), "{:?}", self.asked);
    }
}

fn note(event: &Value, complaints: &mut Vec<String>, asked: &mut Vec<String>) {
    let parameters = &event["params"];
    match event["method"].as_str().unwrap_or_default() {
        "Runtime.exceptionThrown" => complaints.push(parameters.to_string()),
        "Runtime.consoleAPICalled" if parameters["type"] != "log" => complaints.push(parameters.to_string()),
        "Log.entryAdded" => complaints.push(parameters.to_string()),
        "Network.requestWillBeSent" => {
            asked.push(parameters["request"]["url"].as_str().unwrap_or_default().to_owned());
        }
        _ => {}
    }
}
