//! The way to the API server: the kubeconfig that kubectl would take, and kube's client with the limits of the driver's own
//! adapter. Asks nothing, and quotes no kubeconfig (C47).

use std::env;
use std::path::{Path, PathBuf};

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use per_node::adapters::kube::client::{client_of, without_content};
use per_node::adapters::kube::settings::Settings;
use per_node::adapters::kube::transport::Transport;

use crate::api::Api;
use crate::cli::ReachFlags;
use crate::failure::Failure;

const NO_KUBECONFIG: &str = "no kubeconfig: give --kubeconfig, or let KUBECONFIG name a file that is there, or make \
     ~/.kube/config; and this is no pod with a service account";

/// A client as the flags say.
pub async fn connect(reach: &ReachFlags) -> Result<Api, Failure> {
    let config = match kubeconfig(reach.kubeconfig.as_deref())? {
        Some(kubeconfig) => {
            let options =
                KubeConfigOptions { context: reach.context.clone(), ..KubeConfigOptions::default() };
            let read = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            read.map_err(|error| broken(Path::new("kubeconfig"), &error))?
        }
        None => {
            let nothing = || Failure::Connect { why: NO_KUBECONFIG.to_owned() };
            let in_pod = reach.context.is_none().then(|| Config::incluster().ok()).flatten();
            in_pod.ok_or_else(nothing)?
        }
    };
    let settings = Settings::default();
    let namespace = config.default_namespace.clone();
    let connection = client_of(config, &settings)?;
    let client = connection.client.clone();
    Ok(Api::new(Transport::new(connection, settings), client, namespace))
}

/// The namespace of the context, where a command does without a cluster: `default` where no kubeconfig says another.
pub fn default_namespace(reach: &ReachFlags) -> Result<String, Failure> {
    let Some(kubeconfig) = kubeconfig(reach.kubeconfig.as_deref())? else { return Ok("default".to_owned()) };
    let wanted = reach.context.as_ref().or(kubeconfig.current_context.as_ref());
    let mut contexts = kubeconfig.contexts.iter().filter(|context| Some(&context.name) == wanted);
    let named = contexts.next().and_then(|context| context.context.as_ref()?.namespace.clone());
    Ok(named.unwrap_or_else(|| "default".to_owned()))
}

/// The files that kubectl would read, merged as it does: the flag's alone, else those of `$KUBECONFIG` that are there, else
/// the one in the home directory. `None` where there is none at all.
fn kubeconfig(flag: Option<&Path>) -> Result<Option<Kubeconfig>, Failure> {
    if let Some(path) = flag {
        return Kubeconfig::read_from(path).map(Some).map_err(|error| broken(path, &error));
    }
    let listed: Vec<PathBuf> = env::var_os("KUBECONFIG")
        .map(|list| env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    let paths = if listed.is_empty() {
        env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect()
    } else {
        listed
    };
    let mut merged = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let next = Kubeconfig::read_from(path).map_err(|error| broken(path, &error))?;
        merged = Some(match merged {
            None => next,
            Some(before) => Kubeconfig::merge(before, next).map_err(|error| broken(path, &error))?,
        });
    }
    Ok(merged)
}

fn broken(path: &Path, error: &KubeconfigError) -> Failure {
    Failure::Connect { why: format!("{}: {}", path.display(), without_content(error)) }
}
