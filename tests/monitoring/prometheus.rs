//! Debian's Prometheus as a process, with the rules and the scrape configuration of deploy/monitoring, and what it answers.
//!
//! It cannot ask a Kubernetes API (Debian builds it without): what it would find there is given to it as a target that stands still,
//! with the labels that it would have found, so that the relabelling is the one of the file.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::host::{PATIENCE, free_port};
use super::in_tree;
use super::rules::{RULES, daemon_set, yaml};

pub const SCRAPE: &str = "deploy/monitoring/scrape.yml";
/// Between two tries of a question.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// A Prometheus that runs until it is dropped.
pub struct Prometheus {
    root: TempDir,
    address: SocketAddr,
    process: Child,
}

impl Prometheus {
    /// Starts one that scrapes the plugin at `plugin`, and waits until it is ready.
    pub async fn start(plugin: SocketAddr) -> Prometheus {
        let root = TempDir::new().expect("a directory");
        let config = root.path().join("prometheus.yml");
        fs::write(&config, configuration(plugin).to_string()).expect("write");
        promtool(&["check", "config", config.to_str().expect("a path")]).await;
        let address = free_port();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", root.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(root.path().join("log")).expect("the log"))
            .kill_on_drop(true)
            .spawn()
            .expect("Debian's package prometheus is installed");
        let mut prometheus = Prometheus { root, address, process };
        let is_ready = async {
            while !get(address, "/-/ready").await.is_some_and(|answer| answer.starts_with("HTTP/1.0 200")) {
                let ended = prometheus.process.try_wait().expect("wait");
                assert!(ended.is_none(), "{ended:?}: {}", prometheus.log());
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        tokio::time::timeout(PATIENCE, is_ready).await.expect("Prometheus is ready");
        prometheus
    }

    /// The samples of a query now.
    pub async fn query(&self, expression: &str) -> Vec<Value> {
        let answer = self.api(&format!("query?query={}", escaped(expression))).await;
        answer["result"].as_array().unwrap_or_else(|| panic!("{expression}: {answer}")).clone()
    }

    /// Every rule, as Prometheus sees it.
    pub async fn rules(&self) -> Vec<Value> {
        let answer = self.api("rules").await;
        let groups = answer["groups"].as_array().expect("groups").iter();
        groups.flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
    }

    /// Asks until it is so; where it never is, the latest answer says what was not.
    pub async fn until(&self, mut is_so: impl AsyncFnMut(&Prometheus) -> Result<(), String>) {
        let mut latest = String::new();
        let wait = async {
            while let Err(why) = is_so(self).await {
                latest = why;
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        assert!(waited.is_ok(), "{latest}; Prometheus says: {}", self.log());
    }

    async fn api(&self, path: &str) -> Value {
        let answer = get(self.address, &format!("/api/v1/{path}")).await.expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(body["status"], "success", "{path}: {body}");
        body["data"].clone()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("log")).unwrap_or_default()
    }
}

/// The file's own job, quicker and with one pod. JSON is YAML.
fn configuration(plugin: SocketAddr) -> Value {
    let mut jobs = yaml(SCRAPE)["scrape_configs"].take();
    let job = jobs[0].as_object_mut().expect("a job");
    let asked = job.remove("kubernetes_sd_configs");
    assert_eq!(asked, Some(json!([{"role": "pod"}])), "what is replaced here");
    job.insert("scrape_interval".to_owned(), json!("2s"));
    let annotations = daemon_set()["spec"]["template"]["metadata"].take();
    let labels = json!({
        "__meta_kubernetes_namespace": "per-node",
        "__meta_kubernetes_pod_name": "per-node-x",
        "__meta_kubernetes_pod_node_name": "node-1",
        "__meta_kubernetes_pod_ip": plugin.ip().to_string(),
        "__meta_kubernetes_pod_label_app_kubernetes_io_name": annotations["labels"]["app.kubernetes.io/name"],
        "__meta_kubernetes_pod_annotation_prometheus_io_scrape": annotations["annotations"]["prometheus.io/scrape"],
        "__meta_kubernetes_pod_annotation_prometheus_io_path": annotations["annotations"]["prometheus.io/path"],
        "__meta_kubernetes_pod_annotation_prometheus_io_port": plugin.port().to_string(),
    });
    let nobody = json!({"__meta_kubernetes_pod_label_app_kubernetes_io_name": "another"});
    let targets = json!([
        {"targets": ["pod"], "labels": labels},
        {"targets": ["another"], "labels": nobody},
    ]);
    job.insert("static_configs".to_owned(), targets);
    json!({
        "global": {"evaluation_interval": "1s"},
        "rule_files": [in_tree(RULES)],
        "scrape_configs": jobs,
    })
}

/// Runs promtool in the top of the repository. It must find nothing to say against what it looks at.
pub async fn promtool(arguments: &[&str]) -> String {
    promtool_on(arguments, "").await
}

/// The same, with something to read.
pub async fn promtool_on(arguments: &[&str], input: &str) -> String {
    let mut process = Command::new("promtool")
        .args(arguments)
        .current_dir(in_tree(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("Debian's package prometheus is installed");
    let mut stdin = process.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).await.expect("it reads");
    drop(stdin);
    let output = process.wait_with_output().await.expect("promtool ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    said
}

/// The whole answer; `None` where nobody answers. HTTP/1.0, so that the body comes in one piece.
async fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// For a query string.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
