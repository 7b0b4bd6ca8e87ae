//! The fake API server of the tests, on a thread of its own, and the PersistentVolumes in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api_server::ApiServer;
use crate::client::handle;
use crate::driver::DRIVER_NAME;
use crate::field::{Field, wait_until};

pub struct Api {
    pub server: ApiServer,
    kubeconfig: PathBuf,
    /// Last: the server's tasks end before what runs them.
    _runtime: tokio::runtime::Runtime,
}

impl Api {
    /// A server with this many PersistentVolumes of ours, of the handles 0 and up.
    pub fn start(field: &Field, volumes: usize) -> Api {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let server = runtime.block_on(ApiServer::start());
        let kubeconfig = field.path("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig()).expect("a kubeconfig");
        let api = Api { server, kubeconfig, _runtime: runtime };
        for number in 0..volumes {
            api.create(&handle(number));
        }
        api
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub fn create(&self, handle: &str) {
        self.server.store(|store| store.create_volume(handle, DRIVER_NAME, handle)).expect("a new volume");
    }

    pub fn create_foreign(&self, count: u64) {
        self.server.store(|store| {
            for number in 0..count {
                let (name, handle) = (format!("pvc-{number:08}"), format!("handle-{number:08}"));
                store.create_volume(&name, "other.example", &handle).expect("a new volume");
            }
        });
    }

    pub fn delete(&self, handle: &str) {
        self.server.store(|store| store.delete_volume(handle)).expect("it was there");
    }

    /// Somebody watches: what changes from now on is seen to change.
    pub fn wait_for_watch(&self) {
        let watched = || self.server.standing_watches() > 0;
        wait_until("the driver watches", Duration::from_millis(10), watched);
    }
}
