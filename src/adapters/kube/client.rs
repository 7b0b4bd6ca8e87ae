//! Where the API server is and who we are: from the pod's service account or from a kubeconfig.
//!
//! Takes kube's `Client` and mends what would hurt here: its hidden retry layer is off (callers decide about retries, and
//! every one has a bound), connections have read and connect limits, and no error text of a credential or of a kubeconfig
//! (which may quote the file) goes further than this module (C47). It asks the server nothing.

use std::path::{Path, PathBuf};

use http::Uri;
use kube::Client;
use kube::client::AuthError;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::settings::Settings;

/// Why no client could be made. The process should end: no waiting makes this better.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig named by `--kubeconfig` cannot be used.
    #[error("--kubeconfig {}: {why}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, without quoting it.
        why: String,
    },
    /// No kubeconfig was given, and this process does not run in a pod with a service account.
    #[error("no --kubeconfig, and not in a pod with a service account: {why}")]
    InCluster {
        /// What was missing.
        why: String,
    },
    /// The credentials or certificates cannot be used.
    #[error("the credentials for the API server cannot be used: {why}")]
    Credentials {
        /// Which part, without quoting it.
        why: String,
    },
}

/// A client, and where it goes.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The API server's address, for errors. Never with a user or a password.
    pub server: String,
}

/// A client of the API server that `kubeconfig` names, or else of the cluster this pod runs in.
///
/// Must be called within a tokio runtime. Does not connect yet.
///
/// # Errors
/// Where there is no usable configuration.
pub async fn connect(kubeconfig: Option<&Path>, settings: &Settings) -> Result<Connection, ConnectError> {
    let config = match kubeconfig {
        Some(path) => from_kubeconfig(path).await?,
        None => Config::incluster().map_err(|error| ConnectError::InCluster { why: error.to_string() })?,
    };
    client_of(config, settings)
}

/// A client of a configuration that somebody else has read, with the same mends. Must be called within a tokio runtime.
///
/// # Errors
/// Where its credentials or certificates cannot be used.
pub fn client_of(config: Config, settings: &Settings) -> Result<Connection, ConnectError> {
    let server = without_user(&config.cluster_url);
    let client = Client::try_from(mended(config, settings))
        .map_err(|error| ConnectError::Credentials { why: without_credentials(&error) })?;
    Ok(Connection { client, server })
}

/// Scheme, host and port.
fn without_user(address: &Uri) -> String {
    let scheme = address.scheme_str().unwrap_or("https");
    match (address.host(), address.port()) {
        (Some(host), Some(port)) => format!("{scheme}://{host}:{port}"),
        (Some(host), None) => format!("{scheme}://{host}"),
        (None, _) => "an address without a host".to_owned(),
    }
}

async fn from_kubeconfig(path: &Path) -> Result<Config, ConnectError> {
    let refuse = |error: &KubeconfigError| ConnectError::Kubeconfig {
        path: path.to_path_buf(),
        why: without_content(error),
    };
    let file = Kubeconfig::read_from(path).map_err(|error| refuse(&error))?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(|error| refuse(&error))
}

/// What is wrong with a kubeconfig, without quoting it.
#[must_use]
pub fn without_content(error: &KubeconfigError) -> String {
    match error {
        // The parser's text shows the lines around the mistake, and those may hold a token.
        KubeconfigError::Parse(_) => "it is not the YAML of a kubeconfig".to_owned(),
        KubeconfigError::ReadConfig(io, _) => format!("it cannot be read: {}", io.kind()),
        other => other.to_string(),
    }
}

/// The configuration with kube's traps taken out.
fn mended(mut config: Config, settings: &Settings) -> Config {
    config.default_retry = false;
    config.connect_timeout = Some(settings.connect_timeout);
    // A backstop below the limits that each call sets for itself; it must outlast the silence of a healthy watch.
    config.read_timeout = Some(settings.watch_idle_timeout + settings.answer_timeout);
    config.reset_reader_on_write = true;
    config
}

/// The causes of a failure to get an answer, outermost first, less anything that a credential may have leaked into.
#[must_use]
pub fn without_credentials(error: &kube::Error) -> String {
    const CAUSES_MAX: usize = 8;
    let mut causes: Vec<String> = Vec::new();
    let mut next: Option<&(dyn std::error::Error + 'static)> = match error {
        kube::Error::Auth(auth) => Some(auth),
        kube::Error::Service(service) => Some(service.as_ref()),
        kube::Error::HyperError(hyper) => Some(hyper),
        other => Some(other),
    };
    while let Some(cause) = next.filter(|_| causes.len() < CAUSES_MAX) {
        if let Some(auth) = cause.downcast_ref::<AuthError>() {
            causes.push(credential_failure(auth));
            break;
        }
        let text = cause.to_string();
        // Layers like to repeat the text of what they wrap.
        if causes.last().is_none_or(|last| !last.contains(&text)) {
            causes.push(text);
        }
        next = cause.source();
    }
    causes.join(": ")
}

/// An exec plugin's output is part of kube's error text and may be the token itself.
fn credential_failure(error: &AuthError) -> String {
    match error {
        AuthError::ReadTokenFile(io, path) => format!("token file {}: {}", path.display(), io.kind()),
        _ => "no credentials could be obtained".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("writable");
        file
    }

    const SERVER: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        contexts: [{name: c, context: {cluster: k, user: u}}]\n\
        clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}]\n";

    #[tokio::test]
    async fn kubes_hidden_retries_are_off_and_reads_have_a_limit() {
        let file = kubeconfig(&format!("{SERVER}users: [{{name: u, user: {{}}}}]\n"));
        let config = mended(from_kubeconfig(file.path()).await.expect("usable"), &Settings::default());
        assert!(!config.default_retry);
        assert!(
            config.read_timeout.is_some() && config.connect_timeout.is_some() && config.reset_reader_on_write
        );
    }

    #[test]
    fn c47_an_address_is_told_without_its_user() {
        let told = |address: &'static str| without_user(&Uri::from_static(address));
        assert_eq!(told("https://who:SECRET@10.96.0.1:6443/k8s/clusters/c-1"), "https://10.96.0.1:6443");
        assert_eq!(told("http://[fd00::1]:8080"), "http://[fd00::1]:8080");
        assert_eq!(told("https://kubernetes.default.svc"), "https://kubernetes.default.svc");
    }

    #[tokio::test]
    async fn c47_a_broken_kubeconfig_is_not_quoted() {
        let file = kubeconfig("users: [{name: u, user: {token: SECRET-TOKEN\n  : : ]");
        let error = connect(Some(file.path()), &Settings::default()).await.map(drop).expect_err("no YAML");
        assert!(error.to_string().starts_with("--kubeconfig /"), "{error}");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_names_the_flag_and_the_file() {
        let error = connect(Some(Path::new("/nowhere/config")), &Settings::default()).await.map(drop);
        assert_eq!(
            error.expect_err("missing").to_string(),
            "--kubeconfig /nowhere/config: it cannot be read: entity not found"
        );
    }

    #[tokio::test]
    async fn c47_what_a_credential_plugin_prints_stays_out_of_errors() {
        let exec = "{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never, \
            args: ['-c', 'echo SECRET-TOKEN; exit 3']}";
        let file = kubeconfig(&format!("{SERVER}users: [{{name: u, user: {{exec: {exec}}}}}]\n"));
        let error =
            connect(Some(file.path()), &Settings::default()).await.map(drop).expect_err("the plugin fails");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
        assert!(error.to_string().contains("no credentials could be obtained"), "{error}");
    }
}
