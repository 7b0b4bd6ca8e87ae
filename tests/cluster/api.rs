//! Objects of the API server, read and written. kubectl would cost a process and a discovery for each, so what a case needs to
//! be there and what it waits for go through this client; what a user types is typed with kubectl (see `case.rs`).
//!
//! No answer is no finding: what had none, or heard that the server could give none, is asked again. The server may be slow,
//! and a case may have taken it away.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope};
use serde_json::Value;

use super::wait::PATIENCE_S;

/// Requests on their way at the same time, where a case makes many objects.
const AT_ONCE: usize = 32;

/// How long until the server is asked again.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A client and the runtime that drives it, shared by all cases.
pub struct Api {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
    /// Where the server keeps objects of a kind, as it has said.
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>>,
}

/// Asks until there is an answer, be it a refusal, for as long as anything is waited for.
async fn answered<T>(mut ask: impl AsyncFnMut() -> kube::Result<T>) -> kube::Result<T> {
    let deadline = Instant::now() + Duration::from_secs(PATIENCE_S);
    loop {
        let answer = ask().await;
        let none = match &answer {
            Ok(_) => false,
            Err(kube::Error::Api(status)) => status.code >= 500 || status.code == 429,
            Err(_) => true,
        };
        if !none || Instant::now() >= deadline {
            return answer;
        }
        tokio::time::sleep(ASKED_AGAIN_AFTER).await;
    }
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
            // Asking again is `answered`'s.
            config.default_retry = false;
            config.read_timeout = Some(Duration::from_secs(PATIENCE_S));
            kube::Client::try_from(config).expect("a client")
        });
        Self { runtime, client, kinds: Mutex::default() }
    }

    async fn request<T: serde::de::DeserializeOwned>(
        &self,
        method: http::Method,
        path: &str,
        body: Option<&Value>,
    ) -> kube::Result<T> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        answered(async || {
            let request = http::Request::builder().method(method.clone()).uri(path);
            let request = request.header("content-type", "application/json").body(body.clone());
            self.client.request(request.expect("a request")).await
        })
        .await
    }

    /// The object or list at a path, or nothing where there is none.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.runtime.block_on(self.request(http::Method::GET, path, None)).ok()
    }

    /// How long the server takes to say that it is well, or nothing where it does not say so.
    pub fn time_of_an_answer(&self) -> Option<Duration> {
        let began = Instant::now();
        self.text("/readyz").map(|_| began.elapsed())
    }

    /// Posts an object to a path, and gives back the answer. Panics where it is refused.
    pub fn create(&self, path: &str, object: &Value) -> Value {
        self.runtime
            .block_on(self.request(http::Method::POST, path, Some(object)))
            .unwrap_or_else(|error| panic!("post {object} to {path}: {error}"))
    }

    /// Makes objects below a path, many at a time. Panics where one is refused.
    pub fn create_all(&self, path: &str, objects: &[Value]) {
        let all = futures_util::stream::iter(objects).for_each_concurrent(AT_ONCE, async |object| {
            match self.request::<Value>(http::Method::POST, path, Some(object)).await {
                Ok(_) => {}
                // It was made by a request whose answer did not come.
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(error) => panic!("post {object} to {path}: {error}"),
            }
        });
        self.runtime.block_on(all);
    }

    /// Applies an object, or each of a list's, to a namespace where its kind lives in one. Panics where it is refused, as it is
    /// for a field that the server does not know.
    pub fn apply(&self, namespace: &str, object: &Value) {
        let objects = object["items"].as_array().map_or(std::slice::from_ref(object), Vec::as_slice);
        let all = futures_util::stream::iter(objects)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, async |object| self.apply_one(namespace, object).await);
        if let Err(error) = self.runtime.block_on(all) {
            panic!("apply {object}: {error}");
        }
    }

    async fn apply_one(&self, namespace: &str, object: &Value) -> kube::Result<()> {
        let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        let (kind, can) = self.kind_of(&object).await?;
        let namespace = object.metadata.namespace.as_deref().unwrap_or(namespace);
        let objects: kube::Api<DynamicObject> = match can.scope {
            Scope::Cluster => kube::Api::all_with(self.client.clone(), &kind),
            Scope::Namespaced => kube::Api::namespaced_with(self.client.clone(), namespace, &kind),
        };
        let name = object.metadata.name.as_deref().expect("a name");
        let how = PatchParams::apply("cases").force().validation_strict();
        answered(async || objects.patch(name, &how, &Patch::Apply(&object)).await).await?;
        Ok(())
    }

    async fn kind_of(&self, object: &DynamicObject) -> kube::Result<(ApiResource, ApiCapabilities)> {
        let kind = object.types.as_ref().expect("a kind").try_into().expect("a version and a kind");
        if let Some(known) = self.kinds.lock().expect("nobody panics with it").get(&kind) {
            return Ok(known.clone());
        }
        let found = answered(async || kube::discovery::pinned_kind(&self.client, &kind).await).await?;
        self.kinds.lock().expect("nobody panics with it").insert(kind, found.clone());
        Ok(found)
    }

    /// Deletes what a path with a selector lists, in one request.
    pub fn delete_all(&self, path: &str) {
        let deleted = self.runtime.block_on(self.request::<Value>(http::Method::DELETE, path, None));
        deleted.expect("the objects are deleted");
    }

    /// The text at a path: logs, metrics, health. Asked once, since a plugin's page may say of itself that it is unwell.
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
