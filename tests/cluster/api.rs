//! Reading objects from the API server. Polling with kubectl would cost a process for each look, so waits use this client;
//! what a user types is typed with kubectl (see `case.rs`).

use std::sync::OnceLock;

use futures_util::StreamExt as _;
use serde_json::Value;

/// Requests on their way at the same time, where a case makes many objects.
const AT_ONCE: usize = 32;

/// A client and the runtime that drives it, shared by all cases.
pub struct Api {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
}

/// The one client of this process, made at its first use.
pub fn api() -> &'static Api {
    static API: OnceLock<Api> = OnceLock::new();
    API.get_or_init(|| Api::connect(&super::cluster::cluster().kubeconfig()))
}

impl Api {
    fn connect(kubeconfig: &std::path::Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let client = runtime.block_on(async {
            let kubeconfig =
                kube::config::Kubeconfig::read_from(kubeconfig).expect("the cluster's kubeconfig");
            let mut config =
                kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
                    .await
                    .expect("a configuration");
            // A case takes the API server away: its looks fail at once and are repeated by whoever waits.
            config.default_retry = false;
            config.read_timeout = Some(std::time::Duration::from_secs(super::wait::PATIENCE_S));
            kube::Client::try_from(config).expect("a client")
        });
        Self { runtime, client }
    }

    /// The object or list at a path, or nothing where there is none (or while the API server is away).
    pub fn get(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        self.runtime.block_on(self.client.request::<Value>(request)).ok()
    }

    /// Posts an object to a path, and gives back the answer. Panics where it is refused.
    pub fn create(&self, path: &str, object: &Value) -> Value {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a request");
        self.runtime.block_on(self.client.request(request)).expect("the object is made")
    }

    /// Makes objects below a path, many at a time. Panics where one is refused.
    pub fn create_all(&self, path: &str, objects: &[Value]) {
        let all = futures_util::stream::iter(objects).for_each_concurrent(AT_ONCE, async |object| {
            let request = http::Request::post(path).header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes()).expect("a request");
            self.client.request::<Value>(request).await.expect("the object is made");
        });
        self.runtime.block_on(all);
    }

    /// Deletes what a path with a selector lists, in one request.
    pub fn delete_all(&self, path: &str) {
        let request = http::Request::delete(path).body(Vec::new()).expect("a request");
        self.runtime.block_on(self.client.request::<Value>(request)).expect("the objects are deleted");
    }

    /// The text at a path: logs, metrics, health.
    pub fn text(&self, path: &str) -> Option<String> {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        self.runtime.block_on(self.client.request_text(request)).ok()
    }

    /// The items of the list at a path; empty where it cannot be read.
    pub fn items(&self, path: &str) -> Vec<Value> {
        match self.get(path) {
            Some(mut list) => match list["items"].take() {
                Value::Array(items) => items,
                _other => Vec::new(),
            },
            None => Vec::new(),
        }
    }
}
