//! What the kubelet asks on the registration socket.

use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use crate::proto::registration::registration_server::Registration;
use crate::proto::registration::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};

/// The kind of plugin a CSI driver is to the kubelet.
const PLUGIN_TYPE: &str = "CSIPlugin";

/// The version of the registration's contract. The kubelet takes any 1.x and refuses an empty list.
const SUPPORTED_VERSION: &str = "1.0.0";

/// A text of the kubelet's is kept up to this length.
const ERROR_MAX_BYTES: usize = 1024;

/// What the kubelet told: taken in, or why not.
pub(super) type Told = Result<(), String>;

/// Answers on one registration socket.
pub(super) struct Service {
    pub driver_name: String,
    /// The CSI socket as the kubelet, on the host, sees it: a plain path.
    pub endpoint: String,
    /// Where to say what the kubelet told. What does not fit is older news than what is in it.
    pub told: mpsc::Sender<Told>,
}

#[tonic::async_trait]
impl Registration for Service {
    async fn get_info(&self, _request: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo {
            r#type: PLUGIN_TYPE.to_owned(),
            name: self.driver_name.clone(),
            endpoint: self.endpoint.clone(),
            supported_versions: vec![SUPPORTED_VERSION.to_owned()],
        }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let status = request.into_inner();
        let told = if status.plugin_registered { Ok(()) } else { Err(shortened(status.error)) };
        // Full or closed: the keeper is already about to make a new socket.
        let _ = self.told.try_send(told);
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > ERROR_MAX_BYTES {
        let end = (0..=ERROR_MAX_BYTES).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c43_a_long_error_is_cut_between_characters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let cut = shortened(format!("a{}", "é".repeat(ERROR_MAX_BYTES)));
        assert_eq!(cut.len(), ERROR_MAX_BYTES - 1);
        assert!(cut.ends_with('é'));
    }
}
