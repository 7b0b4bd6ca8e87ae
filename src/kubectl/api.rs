//! What the commands ask the API server: read, list, patch, by the resource's name in RBAC, so that every refusal can say
//! which right was missing. Lists come in pages, and each page is decoded into what the caller keeps.

use kube::Client;
use per_node::adapters::kube::api_error::ApiError;
use per_node::adapters::kube::transport::{Extent, Transport, WriteKind, query_escaped};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Objects of one page.
const PAGE_ITEMS_MAX: u32 = 500;
/// Pages of one list: a server that hands out continue tokens for ever is a failed read.
const PAGES_MAX: u32 = 10_000;
/// Bytes of one page, or of one object.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A resource of the API, by its name in RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// Group and version as a path: `api/v1`, `apis/apps/v1`.
    pub group: &'static str,
    /// The plural.
    pub name: &'static str,
}

#[allow(dead_code, reason = "each command uses some")]
impl Resource {
    pub const PODS: Self = Self { group: "api/v1", name: "pods" };
    pub const NODES: Self = Self { group: "api/v1", name: "nodes" };
    pub const EVENTS: Self = Self { group: "api/v1", name: "events" };
    pub const NAMESPACES: Self = Self { group: "api/v1", name: "namespaces" };
    pub const PERSISTENT_VOLUMES: Self = Self { group: "api/v1", name: "persistentvolumes" };
    pub const PERSISTENT_VOLUME_CLAIMS: Self = Self { group: "api/v1", name: "persistentvolumeclaims" };
    pub const DAEMON_SETS: Self = Self { group: "apis/apps/v1", name: "daemonsets" };
    pub const DEPLOYMENTS: Self = Self { group: "apis/apps/v1", name: "deployments" };
    pub const CSI_DRIVERS: Self = Self { group: "apis/storage.k8s.io/v1", name: "csidrivers" };
    pub const SUBJECT_ACCESS_REVIEWS: Self =
        Self { group: "apis/authorization.k8s.io/v1", name: "subjectaccessreviews" };
    pub const CSI_NODES: Self = Self { group: "apis/storage.k8s.io/v1", name: "csinodes" };

    /// The path of the collection, of all namespaces or of one.
    pub fn path(self, namespace: Option<&str>) -> String {
        let Self { group, name } = self;
        match namespace {
            None => format!("/{group}/{name}"),
            Some(namespace) => format!("/{group}/namespaces/{}/{name}", query_escaped(namespace)),
        }
    }
}

/// Which objects of a list. Empty selects all.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    /// As kubectl's `-l`.
    pub labels: String,
    /// As kubectl's `--field-selector`.
    pub fields: String,
}

/// The API server, as the caller.
pub struct Api {
    transport: Transport,
    client: Client,
    namespace: String,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    /// Go writes an empty list as `null`.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct NameOnly {
    metadata: Name,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

#[allow(dead_code, reason = "each command uses some")]
impl Api {
    /// The API server behind `transport` and `client`, with the namespace that the context names.
    pub fn new(transport: Transport, client: Client, namespace: String) -> Self {
        Self { transport, client, namespace }
    }

    /// The client itself, for what is no request and answer (exec).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The driver's own requests and answers, for what is no object (a pod's proxy).
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The context's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// One object, or `None` where there is none of that name.
    pub async fn get<T: DeserializeOwned>(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let path = format!("{}/{}", resource.path(namespace), query_escaped(name));
        match self.transport.get(&path, ANSWER_BYTES_MAX).await {
            Err(ApiError::NotFound | ApiError::NamespaceEnding) => Ok(None),
            body => {
                let read = body.and_then(|body| decoded(&body));
                read.map(Some).map_err(|why| failure("get", resource.name, namespace, why))
            }
        }
    }

    /// All objects that `selector` selects, of one namespace or of all.
    pub async fn list<T: DeserializeOwned>(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<T>, Failure> {
        let mut items = Vec::new();
        self.for_each(resource, namespace, selector, |item| items.push(item)).await?;
        Ok(items)
    }

    /// Hands each object of a list to `keep`, so that a large list costs the memory of one page and of what is kept.
    pub async fn for_each<T: DeserializeOwned>(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        selector: &Selector,
        keep: impl FnMut(T),
    ) -> Result<(), Failure> {
        self.pages(resource, namespace, selector, Extent::Whole, keep).await
    }

    /// The same for the names alone, which is all that the server is asked for.
    pub async fn for_each_name(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        selector: &Selector,
        mut keep: impl FnMut(String),
    ) -> Result<(), Failure> {
        let keep = |item: NameOnly| keep(item.metadata.name);
        self.pages(resource, namespace, selector, Extent::Metadata, keep).await
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        selector: &Selector,
        extent: Extent,
        mut keep: impl FnMut(T),
    ) -> Result<(), Failure> {
        let fail = |why| failure("list", resource.name, namespace, why);
        let mut base = format!("{}?limit={PAGE_ITEMS_MAX}", resource.path(namespace));
        for (name, value) in [("labelSelector", &selector.labels), ("fieldSelector", &selector.fields)] {
            if !value.is_empty() {
                base.push_str(&format!("&{name}={}", query_escaped(value)));
            }
        }
        let mut next = String::new();
        for _ in 0..PAGES_MAX {
            let path = if next.is_empty() {
                base.clone()
            } else {
                format!("{base}&continue={}", query_escaped(&next))
            };
            let body = self.transport.get_extent(&path, extent, ANSWER_BYTES_MAX).await.map_err(fail)?;
            let page: Page<T> = decoded(&body).map_err(fail)?;
            page.items.into_iter().flatten().for_each(&mut keep);
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(());
            }
        }
        Err(fail(ApiError::Undecodable { what: "a list without end" }))
    }

    /// Creates an object that belongs to no namespace, and gives back what became of it.
    pub async fn create<T: Serialize + DeserializeOwned>(
        &self,
        resource: Resource,
        object: &T,
    ) -> Result<T, Failure> {
        let fail = |why| failure("create", resource.name, None, why);
        let body =
            serde_json::to_vec(object).map_err(|_| fail(ApiError::Undecodable { what: "the request" }))?;
        let answer =
            self.transport.create(&resource.path(None), body, ANSWER_BYTES_MAX).await.map_err(fail)?;
        decoded(&answer).map_err(fail)
    }

    /// Changes one object by a JSON merge patch (RFC 7396).
    pub async fn patch(
        &self,
        resource: Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &serde_json::Value,
    ) -> Result<(), Failure> {
        let path = format!("{}/{}", resource.path(namespace), query_escaped(name));
        let body = patch.to_string().into_bytes();
        let written = self.transport.write(WriteKind::MergePatch, &path, body).await;
        written.map_err(|why| failure("patch", resource.name, namespace, why))
    }
}

fn decoded<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|_| ApiError::Undecodable { what: "an object of the API" })
}

/// The failure of a call, by what the caller was not allowed or could not do.
pub fn failure(
    verb: &'static str,
    resource: &'static str,
    namespace: Option<&str>,
    why: ApiError,
) -> Failure {
    let namespace = namespace.map(str::to_owned);
    match why {
        ApiError::Forbidden => Failure::Forbidden { verb, resource, namespace },
        why => Failure::Api { verb, resource, namespace, why },
    }
}
