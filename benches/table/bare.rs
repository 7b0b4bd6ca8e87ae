//! What a publish could cost at least: tonic servers that answer at once, and decide nothing. One makes the raw system calls
//! ([`RAW`]), one the steps that C10 to C16 ask of a publish ([`STEPS`](crate::steps::STEPS)). Processes of their own, as the driver is.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::time::Duration;

use async_trait::async_trait;
use nix::mount::{MntFlags, umount2};
use per_node::proto::csi;
use per_node::proto::csi::node_server::{Node, NodeServer};
use tonic::{Request, Response, Status};

use crate::client::Side;
use crate::field::{Field, bind, wait_until};
use crate::process::Process;
use crate::steps::{STEPS, Steps};

/// Makes this program such a server, of the kind that follows.
pub const ARGUMENT: &str = "--bare-server";

/// The raw mkdir, mkdir and mount, umount2 and rmdir.
pub const RAW: &str = "bare";

impl Field {
    pub fn start_bare(&self) -> Process {
        self.start_server(RAW)
    }

    /// The limit as its clients see it.
    pub fn bare_side(&self) -> Side {
        self.server_side(RAW)
    }

    /// Starts a server of that kind.
    pub fn start_server(&self, kind: &str) -> Process {
        let program = std::env::current_exe().expect("own path");
        let child = Command::new(program).args([ARGUMENT, kind]).arg(self.path("")).spawn();
        let process = Process(child.expect("the bare server"));
        let socket = socket(&self.path(""), kind);
        wait_until("the bare server", Duration::from_millis(5), || socket.exists());
        process
    }

    /// That server as its clients see it.
    pub fn server_side(&self, kind: &str) -> Side {
        Side::new(&socket(&self.path(""), kind), &self.path(kind))
    }
}

fn socket(root: &Path, kind: &str) -> PathBuf {
    root.join(kind).with_extension("sock")
}

/// Serves until it is killed.
pub fn serve(kind: &str, root: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let work: Box<dyn Work> =
            if kind == STEPS { Box::new(Steps::new(root)) } else { Box::new(Raw::new(root)) };
        let listener = tokio::net::UnixListener::bind(socket(root, kind)).expect("the socket");
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
        let server = tonic::transport::Server::builder().add_service(NodeServer::new(Bare(work)));
        server.serve_with_incoming(incoming).await.expect("served");
    });
}

/// What such a server does for a call.
#[async_trait]
pub trait Work: Send + Sync {
    async fn publish(&self, request: csi::NodePublishVolumeRequest) -> Result<(), Status>;
    async fn unpublish(&self, request: csi::NodeUnpublishVolumeRequest) -> Result<(), Status>;
}

struct Raw {
    copies: PathBuf,
}

impl Raw {
    fn new(root: &Path) -> Raw {
        let copies = root.join("bare-copies");
        std::fs::create_dir(&copies).expect("the copies");
        Raw { copies }
    }
}

#[async_trait]
impl Work for Raw {
    async fn publish(&self, request: csi::NodePublishVolumeRequest) -> Result<(), Status> {
        let copy = self.copies.join(&request.volume_id);
        let _ = std::fs::create_dir(&copy);
        std::fs::create_dir(&request.target_path).map_err(failed)?;
        bind(&copy, Path::new(&request.target_path)).map_err(failed)
    }

    async fn unpublish(&self, request: csi::NodeUnpublishVolumeRequest) -> Result<(), Status> {
        umount2(request.target_path.as_str(), MntFlags::empty()).map_err(failed)?;
        std::fs::remove_dir(&request.target_path).map_err(failed)
    }
}

pub fn failed(error: impl ToString) -> Status {
    Status::internal(error.to_string())
}

struct Bare(Box<dyn Work>);

type Answer<T> = Result<Response<T>, Status>;

/// The calls that it is not asked for.
macro_rules! not_served {
    ($($call:ident($request:ident) -> $response:ident),* $(,)?) => {
        $(
            #[allow(clippy::type_complexity, clippy::type_repetition_in_bounds)]
            fn $call<'a, 'async_trait>(
                &'a self,
                _request: Request<csi::$request>,
            ) -> Pin<Box<dyn Future<Output = Answer<csi::$response>> + Send + 'async_trait>>
            where
                'a: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(async { Err(Status::unimplemented("not part of the benchmark")) })
            }
        )*
    };
}

#[tonic::async_trait]
impl Node for Bare {
    not_served!(
        node_stage_volume(NodeStageVolumeRequest) -> NodeStageVolumeResponse,
        node_unstage_volume(NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse,
        node_get_volume_stats(NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse,
        node_expand_volume(NodeExpandVolumeRequest) -> NodeExpandVolumeResponse,
        node_get_info(NodeGetInfoRequest) -> NodeGetInfoResponse,
        node_get_volume_health(NodeGetVolumeHealthRequest) -> NodeGetVolumeHealthResponse,
        node_get_storage_health(NodeGetStorageHealthRequest) -> NodeGetStorageHealthResponse,
    );

    async fn node_publish_volume(
        &self,
        request: Request<csi::NodePublishVolumeRequest>,
    ) -> Answer<csi::NodePublishVolumeResponse> {
        self.0.publish(request.into_inner()).await?;
        Ok(Response::new(csi::NodePublishVolumeResponse::default()))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<csi::NodeUnpublishVolumeRequest>,
    ) -> Answer<csi::NodeUnpublishVolumeResponse> {
        self.0.unpublish(request.into_inner()).await?;
        Ok(Response::new(csi::NodeUnpublishVolumeResponse::default()))
    }

    async fn node_get_capabilities(
        &self,
        _request: Request<csi::NodeGetCapabilitiesRequest>,
    ) -> Answer<csi::NodeGetCapabilitiesResponse> {
        use csi::node_service_capability::{Rpc, Type, rpc};
        let capability = |capability: rpc::Type| csi::NodeServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: capability.into() })),
        };
        let capabilities =
            [rpc::Type::SingleNodeMultiWriter, rpc::Type::GetVolumeStats, rpc::Type::VolumeMountGroup];
        let capabilities = capabilities.into_iter().map(capability).collect();
        Ok(Response::new(csi::NodeGetCapabilitiesResponse { capabilities }))
    }
}
