//! The Node service: publish, unpublish, statistics, health where it is asked for, and what the node is. Every other
//! call is UNIMPLEMENTED.

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status};
use tracing::Instrument;

use super::calls::{Calls, Lost};
use super::decision_log::Asked;
use super::pending::Pending;
use super::{About, convert, status};
use crate::domain::use_cases::driver::Driver;
use crate::proto::csi::node_service_capability::{Rpc, Type, rpc};
use crate::proto::csi::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse, NodeGetStorageHealthRequest,
    NodeGetStorageHealthResponse, NodeGetVolumeHealthRequest, NodeGetVolumeHealthResponse,
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest, NodeStageVolumeResponse,
    NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest,
    NodeUnstageVolumeResponse, node_server,
};

/// What the node can do (C4): no staging, no expansion. SINGLE_NODE_MULTI_WRITER makes the kubelet tell a
/// ReadWriteOncePod claim from others; VOLUME_MOUNT_GROUP makes it leave a pod's `fsGroup` to the driver (C7).
/// GET_VOLUME_HEALTH comes with the flag alone (C49).
const CAPABILITIES: [rpc::Type; 3] =
    [rpc::Type::GetVolumeStats, rpc::Type::SingleNodeMultiWriter, rpc::Type::VolumeMountGroup];

/// The calls whose answers are counted, without the one that comes with a flag.
const COUNTED: [&str; 3] = ["NodePublishVolume", "NodeUnpublishVolume", "NodeGetVolumeStats"];

/// Answers for one driver.
pub(super) struct Node {
    driver: Arc<Driver>,
    about: About,
    shutdown: CancellationToken,
    calls: Calls,
    pending: Pending,
}

impl Node {
    pub(super) fn new(driver: Arc<Driver>, about: About, shutdown: CancellationToken, calls: Calls) -> Self {
        let health = about.volume_health.then_some("NodeGetVolumeHealth");
        for call in COUNTED.into_iter().chain(health) {
            driver.tally().can_be_answered(call, status::name(Code::Ok));
        }
        Self { driver, about, shutdown, calls, pending: Pending::default() }
    }

    /// Runs a call that changes something. Tonic drops its handler when the caller goes away; what has begun runs to its end all
    /// the same (C16), and whoever comes again finds its outcome. `lost` finds out what to answer where the call has panicked.
    async fn to_its_end<T: Send + 'static>(
        &self,
        asked: Asked,
        volume_id: &str,
        call: impl Future<Output = Result<T, Status>> + Send + 'static,
        lost: impl Future<Output = Status> + Send + 'static,
    ) -> Result<T, Status> {
        if self.shutdown.is_cancelled() {
            return Err(status::of_shutdown());
        }
        let Some(in_flight) = self.pending.admit(volume_id) else {
            return Err(status::of_crowd());
        };
        let name = asked.call;
        let error = match self.calls.to_its_end(in_flight, told(self.driver.clone(), asked, call)).await {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        log_lost(name, &error);
        let status = match self.pending.admit(volume_id) {
            Some(in_flight) => self.calls.to_its_end(in_flight, lost).await.ok(),
            None => None,
        };
        Err(status.unwrap_or_else(status::of_unknown_outcome))
    }

    /// Runs a call that changes nothing: it ends with its caller.
    async fn while_awaited<T: Send + 'static>(
        &self,
        asked: Asked,
        call: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let name = asked.call;
        let ended = self.calls.while_awaited(told(self.driver.clone(), asked, call));
        ended.await.unwrap_or_else(|error| {
            log_lost(name, &error);
            Err(status::of_lost_answer())
        })
    }
}

/// A call that panicked is answered all the same.
fn log_lost(call: &'static str, error: &Lost) {
    tracing::error!(call, %error, "a call ended without an answer");
}

/// The call, its answer counted and logged.
fn told<T>(
    driver: Arc<Driver>,
    asked: Asked,
    call: impl Future<Output = Result<T, Status>>,
) -> impl Future<Output = Result<T, Status>> {
    let span = asked.span();
    let told = async move {
        let answer = call.await;
        let code = status::name(answer.as_ref().map_or_else(Status::code, |_| Code::Ok));
        driver.tally().answered(asked.call, code);
        asked.answered(code, &answer);
        answer
    };
    told.instrument(span)
}

#[tonic::async_trait]
impl node_server::Node for Node {
    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let request = convert::publish(request.into_inner());
        let (asked, request) = (Asked::to_publish(&request), Arc::new(request));
        let (driver, of_call) = (self.driver.clone(), request.clone());
        let publish =
            async move { driver.publish(&of_call).await.map_err(|error| status::of_publish(&error)) };
        let (driver, of_call) = (self.driver.clone(), request.clone());
        let lost = async move { status::of_lost_publish(driver.take_back(&of_call).await) };
        let answer = self.to_its_end(asked, &request.volume_id, publish, lost).await;
        answer.map(|()| Response::new(NodePublishVolumeResponse {}))
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let request = convert::unpublish(request.into_inner());
        let (asked, volume_id) = (Asked::to_unpublish(&request), request.volume_id.clone());
        let driver = self.driver.clone();
        let unpublish =
            async move { driver.unpublish(&request).await.map_err(|error| status::of_unpublish(&error)) };
        let lost = async { status::of_lost_answer() };
        let answer = self.to_its_end(asked, &volume_id, unpublish, lost).await;
        answer.map(|()| Response::new(NodeUnpublishVolumeResponse {}))
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        let NodeGetVolumeStatsRequest { volume_id, volume_path, .. } = request.into_inner();
        let asked = Asked::to_look("NodeGetVolumeStats", &volume_id, &volume_path);
        let driver = self.driver.clone();
        let statistics = async move {
            let statistics = driver.statistics(&volume_id, &volume_path).await;
            statistics.map_err(|error| status::of_statistics(&error))
        };
        let answer = self.while_awaited(asked, statistics).await;
        answer.map(|statistics| Response::new(convert::statistics(&statistics)))
    }

    async fn node_get_volume_health(
        &self,
        request: Request<NodeGetVolumeHealthRequest>,
    ) -> Result<Response<NodeGetVolumeHealthResponse>, Status> {
        if !self.about.volume_health {
            return Err(status::of_unserved("NodeGetVolumeHealth"));
        }
        let NodeGetVolumeHealthRequest { volume_id, volume_publish_path, .. } = request.into_inner();
        let asked = Asked::to_look("NodeGetVolumeHealth", &volume_id, &volume_publish_path);
        let (driver, handle) = (self.driver.clone(), volume_id.clone());
        let health = async move {
            let health = driver.health(&handle, &volume_publish_path).await;
            health.map_err(|error| status::of_health(&error))
        };
        let answer = self.while_awaited(asked, health).await;
        answer.map(|conditions| Response::new(convert::health(volume_id, &conditions)))
    }

    async fn node_get_capabilities(
        &self,
        _request: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let capability =
            |rpc: rpc::Type| NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: rpc.into() })) };
        let health = self.about.volume_health.then_some(rpc::Type::GetVolumeHealth);
        let capabilities = CAPABILITIES.into_iter().chain(health).map(capability).collect();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    /// The name alone: no limit and no topology (C4).
    async fn node_get_info(
        &self,
        _request: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        let node_id = self.about.node_id.clone();
        Ok(Response::new(NodeGetInfoResponse { node_id, max_volumes_per_node: 0, accessible_topology: None }))
    }

    async fn node_stage_volume(
        &self,
        _request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        Err(status::of_unserved("NodeStageVolume"))
    }

    async fn node_unstage_volume(
        &self,
        _request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        Err(status::of_unserved("NodeUnstageVolume"))
    }

    async fn node_expand_volume(
        &self,
        _request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        Err(status::of_unserved("NodeExpandVolume"))
    }

    async fn node_get_storage_health(
        &self,
        _request: Request<NodeGetStorageHealthRequest>,
    ) -> Result<Response<NodeGetStorageHealthResponse>, Status> {
        Err(status::of_unserved("NodeGetStorageHealth"))
    }
}
