//! The least that a publish could cost: a tonic server that answers at once and makes the raw system calls, and nothing else.
//! A process of its own, as the driver is.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::time::Duration;

use nix::mount::{MntFlags, umount2};
use per_node::proto::csi;
use per_node::proto::csi::node_server::{Node, NodeServer};
use tonic::{Request, Response, Status};

use crate::client::Side;
use crate::field::{Field, bind, wait_until};
use crate::process::Process;

/// Makes this program that server.
pub const ARGUMENT: &str = "--bare-server";

const SOCKET: &str = "bare.sock";

impl Field {
    pub fn start_bare(&self) -> Process {
        let program = std::env::current_exe().expect("own path");
        let child = Command::new(program).arg(ARGUMENT).arg(self.path("")).spawn().expect("the bare server");
        let process = Process(child);
        wait_until("the bare server", Duration::from_millis(5), || self.path(SOCKET).exists());
        process
    }

    /// The limit as its clients see it.
    pub fn bare_side(&self) -> Side {
        Side::new(&self.path(SOCKET), &self.path("bare"))
    }
}

/// Serves until it is killed.
pub fn serve(root: &Path) {
    let copies = root.join("bare-copies");
    std::fs::create_dir(&copies).expect("the copies");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(root.join(SOCKET)).expect("the socket");
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
        let server = tonic::transport::Server::builder().add_service(NodeServer::new(Bare { copies }));
        server.serve_with_incoming(incoming).await.expect("served");
    });
}

struct Bare {
    copies: PathBuf,
}

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
        let request = request.into_inner();
        let copy = self.copies.join(&request.volume_id);
        let _ = std::fs::create_dir(&copy);
        std::fs::create_dir(&request.target_path).map_err(|error| Status::internal(error.to_string()))?;
        bind(&copy, Path::new(&request.target_path)).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(csi::NodePublishVolumeResponse::default()))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<csi::NodeUnpublishVolumeRequest>,
    ) -> Answer<csi::NodeUnpublishVolumeResponse> {
        let target = request.into_inner().target_path;
        umount2(target.as_str(), MntFlags::empty()).map_err(|error| Status::internal(error.to_string()))?;
        std::fs::remove_dir(&target).map_err(|error| Status::internal(error.to_string()))?;
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
