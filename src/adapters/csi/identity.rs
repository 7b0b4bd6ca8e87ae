//! The Identity service: who the plugin is. It touches neither disk nor API (C45).

use std::collections::BTreeMap;

use tonic::{Request, Response, Status};

use crate::proto::csi::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    ProbeRequest, ProbeResponse, identity_server,
};

/// Answers for one driver name.
pub(super) struct Identity {
    driver_name: String,
}

impl Identity {
    pub(super) fn new(driver_name: String) -> Self {
        Self { driver_name }
    }
}

#[tonic::async_trait]
impl identity_server::Identity for Identity {
    async fn get_plugin_info(
        &self,
        _request: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: self.driver_name.clone(),
            vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: BTreeMap::new(),
        }))
    }

    /// None: there is no controller (C2), no topology and no expansion (C4).
    async fn get_plugin_capabilities(
        &self,
        _request: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities: Vec::new() }))
    }

    /// The socket is served only once holds are rebuilt (C15), so whoever gets an answer finds the driver ready.
    async fn probe(&self, _request: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}
