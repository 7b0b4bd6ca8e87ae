//! Sockets in a directory of their own, with real processes' worth of trouble: stale ones, foreign ones, strangers.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener as StdListener;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

use super::*;

fn place() -> (TempDir, SocketPath) {
    let directory = TempDir::new().expect("a directory");
    let path = SocketPath::parse(&directory.path().join("csi.sock").display().to_string()).expect("a path");
    (directory, path)
}

fn inode(path: &SocketPath) -> u64 {
    fs::symlink_metadata(path.as_path()).expect("it is there").ino()
}

/// A socket whose process was killed.
fn leave_a_stale_socket(path: &SocketPath) -> u64 {
    drop(StdListener::bind(path.as_path()).expect("bind"));
    inode(path)
}

#[tokio::test]
async fn c42_only_the_owner_can_connect_whatever_the_umask() {
    let (_directory, path) = place();
    let bound = bind(&path).await.expect("bind");
    let made = fs::symlink_metadata(path.as_path()).expect("the socket");
    assert!(made.file_type().is_socket());
    assert_eq!(made.permissions().mode() & 0o7777, 0o600);
    assert!(bound.file.is_in_place());
}

#[tokio::test]
async fn c42_the_sockets_directory_is_made_and_nothing_else_in_it() {
    let (directory, _) = place();
    let inner = directory.path().join("plugins/per-node.liken.sh");
    let path = SocketPath::parse(&inner.join("csi.sock").display().to_string()).expect("a path");
    make_directory(&path).expect("mkdir");
    make_directory(&path).expect("and once more");
    let _bound = bind(&path).await.expect("bind");
    let names: Vec<_> = fs::read_dir(&inner).expect("read").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(names, ["csi.sock"]);
}

#[tokio::test]
async fn c42_a_stale_socket_is_replaced() {
    let (_directory, path) = place();
    leave_a_stale_socket(&path);
    let bound = bind(&path).await.expect("bind");
    UnixStream::connect(path.as_path()).await.expect("the new one answers");
    assert!(bound.file.is_in_place());
}

#[tokio::test]
async fn c42_a_file_that_is_no_socket_is_not_replaced() {
    let (directory, path) = place();
    fs::write(path.as_path(), "data").expect("write");
    assert!(matches!(bind(&path).await, Err(BindError::NotASocket(_))));
    assert_eq!(fs::read(path.as_path()).expect("still there"), b"data");

    // Nor is a symlink, not even one to a socket: what it leads to is somebody else's.
    fs::remove_file(path.as_path()).expect("remove");
    let elsewhere = directory.path().join("other.sock");
    drop(StdListener::bind(&elsewhere).expect("bind"));
    symlink(&elsewhere, path.as_path()).expect("symlink");
    assert!(matches!(bind(&path).await, Err(BindError::NotASocket(_))));
    assert!(elsewhere.exists());
}

#[tokio::test(start_paused = true)]
async fn c42_a_socket_that_somebody_serves_stays_his() {
    let (_directory, path) = place();
    let other = StdListener::bind(path.as_path()).expect("bind");
    let before = inode(&path);
    assert!(matches!(bind(&path).await, Err(BindError::Served(_))));
    assert_eq!(inode(&path), before);
    drop(other);
    bind(&path).await.expect("and once he is gone it is ours");
}

#[tokio::test]
async fn c42_a_successors_socket_is_never_removed() {
    let (_directory, path) = place();
    let ours = bind(&path).await.expect("bind");
    fs::remove_file(path.as_path()).expect("an operator removes it");
    let successor = bind(&path).await.expect("the successor binds");
    assert!(!ours.file.is_in_place());
    assert!(!ours.file.remove().expect("looks"), "it was not ours to remove");
    assert!(successor.file.is_in_place());
    assert!(successor.file.remove().expect("removes"));
    assert!(!path.as_path().exists());
    assert!(!successor.file.remove().expect("looks"), "once is enough");
}

#[tokio::test]
async fn c42_a_shutdown_removes_the_socket_and_waits_for_what_was_begun() {
    let (_directory, path) = place();
    let bound = bind(&path).await.expect("bind");
    let (shutdown, calls) = (CancellationToken::new(), TaskTracker::new());
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    calls.spawn(held);
    let service = tokio::spawn(serve(Routes::default(), bound, shutdown.clone(), calls));
    let idle = UnixStream::connect(path.as_path()).await.expect("connect");
    shutdown.cancel();
    while path.as_path().exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!service.is_finished(), "a call is still in flight");
    drop(idle);
    release.send(()).expect("the call ends");
    assert_eq!(service.await.expect("joins").expect("serves"), Drain::Complete);
}

#[tokio::test(start_paused = true)]
async fn c42_a_shutdown_does_not_wait_for_ever() {
    let (_directory, path) = place();
    let bound = bind(&path).await.expect("bind");
    let (shutdown, calls) = (CancellationToken::new(), TaskTracker::new());
    calls.spawn(std::future::pending::<()>());
    shutdown.cancel();
    assert_eq!(serve(Routes::default(), bound, shutdown, calls).await.expect("serves"), Drain::CutOff);
}
