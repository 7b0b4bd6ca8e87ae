//! A controller for csi-sanity to get volumes from. A volume of this driver is a PersistentVolume that a person
//! writes, so all the stub does is to make up a handle. Test-only: the driver never has a controller (C2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use per_node::proto::csi::controller_server::{Controller, ControllerServer};
use per_node::proto::csi::controller_service_capability::{Rpc, Type, rpc};
use per_node::proto::csi::identity_client::IdentityClient;
use per_node::proto::csi::identity_server::{Identity, IdentityServer};
use per_node::proto::csi::plugin_capability::{self, Service, service};
use per_node::proto::csi::validate_volume_capabilities_response::Confirmed;
use per_node::proto::csi::*;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::ServiceExt;

/// Serves the stub on a socket of its own.
pub async fn serve_alone(socket: &Path) -> PathBuf {
    serve(socket, Routes::new(IdentityServer::new(Alone)).add_service(ControllerServer::new(Stub::default())))
}

/// Serves the driver at `plugin` and the stub on one socket, and adds the controller to what the driver says it can.
pub async fn serve_before(plugin: &Path, socket: &Path) -> PathBuf {
    let channel = Endpoint::from_shared(format!("unix://{}", plugin.display()))
        .expect("an endpoint")
        .connect()
        .await
        .expect("the driver takes calls");
    let identity = Beside { driver: IdentityClient::new(channel.clone()) };
    let own = Routes::new(IdentityServer::new(identity)).add_service(ControllerServer::new(Stub::default()));
    // All else goes to the driver and back as it is, byte for byte.
    let router = own.into_axum_router().fallback(move |request: axum::extract::Request| {
        let driver = channel.clone();
        async move { pass_on(driver, request).await }
    });
    serve(socket, Routes::from(router))
}

async fn pass_on(driver: Channel, request: axum::extract::Request) -> http::Response<Body> {
    match driver.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(error) => Status::unavailable(format!("the driver is away: {error}")).into_http(),
    }
}

fn serve(socket: &Path, routes: Routes) -> PathBuf {
    let listener = UnixListener::bind(socket).expect("bind");
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(UnixListenerStream::new(listener)));
    socket.to_owned()
}

/// Makes up handles.
#[derive(Default)]
struct Stub {
    /// Handles by the name they were asked under: the same name gets the same volume.
    volumes: Arc<Mutex<BTreeMap<String, String>>>,
}

#[tonic::async_trait]
impl Controller for Stub {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        let CreateVolumeRequest { name, .. } = request.into_inner();
        if name.is_empty() {
            return Err(Status::invalid_argument("the request has no name"));
        }
        let mut volumes = self.volumes.lock().expect("lock");
        let next = format!("sanity-{}", volumes.len());
        let volume_id = volumes.entry(name).or_insert(next).clone();
        Ok(Response::new(CreateVolumeResponse { volume: Some(Volume { volume_id, ..Volume::default() }) }))
    }

    /// The name is kept, so that no later volume gets a handle, and with it a copy, of an earlier one.
    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        if request.into_inner().volume_id.is_empty() {
            return Err(Status::invalid_argument("the request has no volume_id"));
        }
        Ok(Response::new(DeleteVolumeResponse {}))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        let request = request.into_inner();
        let confirmed = Confirmed {
            volume_context: request.volume_context,
            volume_capabilities: request.volume_capabilities,
            parameters: request.parameters,
            mutable_parameters: request.mutable_parameters,
        };
        let message = String::new();
        Ok(Response::new(ValidateVolumeCapabilitiesResponse { confirmed: Some(confirmed), message }))
    }

    async fn controller_get_capabilities(
        &self,
        _request: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        let rpc = Rpc { r#type: rpc::Type::CreateDeleteVolume.into() };
        let capabilities = vec![ControllerServiceCapability { r#type: Some(Type::Rpc(rpc)) }];
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }
}

fn controller_capability() -> PluginCapability {
    let service = Service { r#type: service::Type::ControllerService.into() };
    PluginCapability { r#type: Some(plugin_capability::Type::Service(service)) }
}

/// The stub's Identity on a socket of its own.
struct Alone;

#[tonic::async_trait]
impl Identity for Alone {
    async fn get_plugin_info(
        &self,
        _request: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        let name = "controller-stub".to_owned();
        let vendor_version = "0".to_owned();
        Ok(Response::new(GetPluginInfoResponse { name, vendor_version, manifest: BTreeMap::new() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _request: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities: vec![controller_capability()] }))
    }

    async fn probe(&self, _request: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: None }))
    }
}

/// The driver's Identity with a controller added.
struct Beside {
    driver: IdentityClient<Channel>,
}

#[tonic::async_trait]
impl Identity for Beside {
    async fn get_plugin_info(
        &self,
        request: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        self.driver.clone().get_plugin_info(request.into_inner()).await
    }

    async fn get_plugin_capabilities(
        &self,
        request: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let mut answer = self.driver.clone().get_plugin_capabilities(request.into_inner()).await?;
        answer.get_mut().capabilities.push(controller_capability());
        Ok(answer)
    }

    async fn probe(&self, request: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        self.driver.clone().probe(request.into_inner()).await
    }
}
