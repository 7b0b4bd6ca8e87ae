//! The CSI service: what a kubelet, or any other CSI client, calls on the driver's socket.
//!
//! Translates calls into the driver's use cases and their outcomes into gRPC codes. It decides nothing about volumes
//! and never shows a secret (C47).

mod calls;
mod convert;
mod decision_log;
mod identity;
mod node;
mod pending;
mod places;
mod status;

use std::sync::Arc;

use http::HeaderValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::{Code, Status};

use crate::domain::use_cases::driver::Driver;
use crate::proto::csi::identity_server::IdentityServer;
use crate::proto::csi::node_server::NodeServer;
use calls::Calls;
use identity::Identity;
use node::Node;
pub use places::SOCKET_THREADS;

/// The longest request that is read. A PersistentVolume, of which a request carries parts, has at most 1.5 MiB, so
/// no client that got it from an API server meets this limit.
const REQUEST_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The text of an answer that the generated servers leave without one, as it travels.
const NOT_SERVED: &str = "per-node%20does%20not%20serve%20this%20call";

/// What the service says of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// The driver's name.
    pub driver_name: String,
    /// The node's name.
    pub node_id: String,
    /// Whether it tells the health of volumes (C49).
    pub volume_health: bool,
}

/// The CSI service of one driver.
#[derive(Clone)]
pub struct CsiService {
    driver: Arc<Driver>,
    about: About,
    shutdown: CancellationToken,
    calls: Calls,
}

impl CsiService {
    /// The service; once `shutdown` is cancelled it begins no more calls. The driver works in the runtime that this is called
    /// in, wherever the routes are served.
    #[must_use]
    pub fn new(driver: Arc<Driver>, about: About, shutdown: CancellationToken) -> Self {
        Self { driver, about, shutdown, calls: Calls::here() }
    }

    /// The calls that run, also those whose callers went away: what a shutdown waits for.
    #[must_use]
    pub fn calls(&self) -> TaskTracker {
        self.calls.tracker()
    }

    /// Everything the socket serves. Whatever is not among it answers UNIMPLEMENTED, with a text.
    #[must_use]
    pub fn routes(&self) -> Routes {
        let identity = Identity::new(self.about.driver_name.clone());
        let node =
            Node::new(self.driver.clone(), self.about.clone(), self.shutdown.clone(), self.calls.clone());
        let routes = Routes::new(IdentityServer::new(identity).max_decoding_message_size(REQUEST_MAX_BYTES))
            .add_service(NodeServer::new(node).max_decoding_message_size(REQUEST_MAX_BYTES));
        let router = routes.into_axum_router().layer(axum::middleware::map_response(with_a_text));
        Routes::from(router)
    }
}

/// CSI wants a text with every answer that is not OK.
async fn with_a_text<B>(mut response: http::Response<B>) -> http::Response<B> {
    let headers = response.headers_mut();
    let unimplemented = HeaderValue::from(Code::Unimplemented as i32);
    if headers.get(Status::GRPC_STATUS) == Some(&unimplemented) && !headers.contains_key(Status::GRPC_MESSAGE)
    {
        headers.insert(Status::GRPC_MESSAGE, HeaderValue::from_static(NOT_SERVED));
    }
    response
}
