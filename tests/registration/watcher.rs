//! A double of the kubelet's plugin watcher: what it does when a socket appears in the registry directory, changes
//! or goes. It knows a socket by its inode and the time it was made (inodes are used again), asks it once, and
//! does not ask again before it is another one; a driver whose registration failed stays unregistered until then (kubelets before 1.36.3).

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use per_node::proto::registration::registration_client::RegistrationClient;
use per_node::proto::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

/// What the watcher did.
#[derive(Debug, PartialEq)]
pub enum Did {
    Registered(PluginInfo),
    Refused(String),
    Deregistered,
    CouldNotAsk(String),
}

/// The answers that RegisterPlugin is to give; where none is left it succeeds.
pub type Script = Arc<Mutex<VecDeque<String>>>;

/// The double; it lives until dropped, as a kubelet until it is stopped.
pub struct PluginWatcher {
    task: JoinHandle<()>,
    events: mpsc::UnboundedReceiver<Did>,
}

impl PluginWatcher {
    pub fn start(directory: &Path, failures: &Script) -> Self {
        let (did, events) = mpsc::unbounded_channel();
        let task = tokio::spawn(watch(directory.to_owned(), failures.clone(), did));
        Self { task, events }
    }

    /// What it did next. Waits long, but not for ever, so that a failure is a failure and no hang.
    pub async fn next(&mut self) -> Did {
        let next = tokio::time::timeout(Duration::from_secs(60), self.events.recv()).await;
        next.expect("the watcher had something to do").expect("the watcher lives")
    }

    /// Whether it has done something that was not yet asked for.
    pub fn is_quiet(&mut self) -> bool {
        self.events.is_empty()
    }
}

impl Drop for PluginWatcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(directory: PathBuf, failures: Script, did: mpsc::UnboundedSender<Did>) {
    // By path: the socket that was seen, and whether the driver behind it is registered.
    let mut known: BTreeMap<PathBuf, (Made, bool)> = BTreeMap::new();
    loop {
        let there = sockets(&directory);
        let changed: Vec<PathBuf> = known
            .iter()
            .filter(|(path, (made, _))| there.get(*path) != Some(made))
            .map(|(path, _)| path.clone())
            .collect();
        for path in changed {
            if let Some((_, true)) = known.remove(&path) {
                let _ = did.send(Did::Deregistered);
            }
        }
        for (path, made) in there {
            if known.contains_key(&path) {
                continue;
            }
            match register(&path, &failures).await {
                Ok(done) => {
                    known.insert(path, (made, matches!(done, Did::Registered(_))));
                    let _ = did.send(done);
                }
                // Not in its cache, so the next round asks again.
                Err(why) => drop(did.send(Did::CouldNotAsk(why))),
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Which socket it is: inode, and seconds and nanoseconds of its making.
type Made = (u64, i64, i64);

fn sockets(directory: &Path) -> BTreeMap<PathBuf, Made> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    entries
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .filter_map(|entry| Some((entry.path(), fs::symlink_metadata(entry.path()).ok()?)))
        .filter(|(_, found)| found.file_type().is_socket())
        .map(|(path, found)| (path, (found.ino(), found.ctime(), found.ctime_nsec())))
        .collect()
}

async fn register(path: &Path, failures: &Script) -> Result<Did, String> {
    let mut client = dial(path).await?;
    let info = client.get_info(InfoRequest {}).await.map_err(|status| status.to_string())?.into_inner();
    if info.r#type != "CSIPlugin" || !info.supported_versions.iter().any(|v| v.starts_with("1.")) {
        return Err(format!("not a plugin that this kubelet takes: {info:?}"));
    }
    let failure = failures.lock().expect("lock").pop_front();
    let status = RegistrationStatus {
        plugin_registered: failure.is_none(),
        error: failure.clone().unwrap_or_default(),
    };
    client.notify_registration_status(status).await.map_err(|status| status.to_string())?;
    Ok(match failure {
        Some(why) => Did::Refused(why),
        None => Did::Registered(info),
    })
}

/// A fresh connection, as the kubelet makes one: its client sends the socket's whole path as the authority, escaped.
pub async fn dial(path: &Path) -> Result<RegistrationClient<Channel>, String> {
    let authority = path.display().to_string().replace('/', "%2F");
    let origin = format!("http://{authority}")
        .parse()
        .map_err(|error: http::uri::InvalidUri| format!("{authority}: {error}"))?;
    let channel = Endpoint::from_shared(format!("unix://{}", path.display()))
        .map_err(|error| error.to_string())?
        .origin(origin)
        .connect()
        .await
        .map_err(|error| error.to_string())?;
    Ok(RegistrationClient::new(channel))
}
