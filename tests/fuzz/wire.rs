//! Bytes that are no call, sent to the real binary's sockets (CSI, confirmations, HTTP) under its own filter: it lives,
//! answers whoever comes next, and keeps no descriptor of theirs.

use std::net::SocketAddr;
use std::time::Duration;

use per_node::proto::csi::NodeGetCapabilitiesRequest;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::host::{Driver, Host, PATIENCE, eventually, free_port, page};
use super::runner::{fuzz, mutated};

/// How long an answer is waited for before the sender goes away; most senders of garbage do not wait at all.
const LISTEN_MS: u64 = 3;

const FRAMES: &[&str] = &[
    "\0\0\u{4}\u{8}\0\0\0\0\0\u{7f}\u{7f}\u{7f}\u{7f}",
    "\0\0\0\u{4}\0\0\0\0\0",
    "\0\0\u{4}\u{3}\0\0\0\0\u{1}\0\0\0\u{8}",
    "\0\0\u{8}\u{6}\0\0\0\0\0ABCDEFGH",
    "\0\0\0\u{1}\u{5}\0\0\0\u{5}",
    "\0\0\0\u{9}\u{4}\0\0\0\u{1}",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u{7f}\u{7f}\u{7f}",
    "\r\n\r\n",
];

/// Which socket of the driver's.
#[derive(Debug, Clone, Copy)]
enum Door {
    Csi,
    Confirm,
    Http,
}

#[derive(Debug, Clone)]
struct Visit {
    door: Door,
    /// Written one after the other.
    pieces: Vec<Vec<u8>>,
    listens: bool,
    says_that_is_all: bool,
}

fn visit() -> impl Strategy<Value = Visit> {
    let door = prop_oneof![6 => Just(Door::Csi), 1 => Just(Door::Confirm), 2 => Just(Door::Http)];
    let bytes = prop_oneof![
        8 => mutated("http2", FRAMES),
        3 => mutated("http1", FRAMES),
        1 => vec(any::<u8>(), 0..400),
    ];
    (door, vec(bytes, 1..3), any::<bool>(), any::<bool>()).prop_map(
        |(door, pieces, listens, says_that_is_all)| Visit { door, pieces, listens, says_that_is_all },
    )
}

async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, visit: &Visit) {
    for piece in &visit.pieces {
        // It may have been thrown out already.
        if stream.write_all(piece).await.is_err() {
            return;
        }
    }
    if visit.says_that_is_all {
        let _ = stream.shutdown().await;
    }
    if visit.listens {
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_millis(LISTEN_MS), stream.read_to_end(&mut answer)).await;
    }
}

async fn pay(host: &Host, http: SocketAddr, visit: &Visit) {
    let unix = match visit.door {
        Door::Http => {
            say(TcpStream::connect(http).await.expect("it listens"), visit).await;
            return;
        }
        Door::Csi => host.socket(),
        Door::Confirm => host.path("store/console.sock"),
    };
    say(UnixStream::connect(unix).await.expect("it listens"), visit).await;
}

/// How many file descriptors the driver has.
fn descriptors(driver: &Driver) -> usize {
    let process = driver.status_of_threads("Tgid").swap_remove(0);
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors").count()
}

#[test]
fn raw_http2_leaves_the_server_as_it_was() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let http = free_port();
    let (host, mut driver) = runtime.block_on(async {
        let host = Host::start().await;
        let mut command = host.serve();
        command.env("PER_NODE_HTTP", http.to_string());
        let driver = host.spawn(command, "driver.log");
        host.is_served().await;
        host.publish("example-store", "u1").await.expect("published");
        assert!(page(http, "/healthz").await.starts_with("HTTP/1.1 200"));
        (host, driver)
    });
    // Connections of the calls above are closed by and by.
    let mut rest = descriptors(&driver);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(10));
        rest = rest.min(descriptors(&driver));
    }
    fuzz("wire", 300, &visit(), |visit| {
        runtime.block_on(async {
            pay(&host, http, &visit).await;
            let answer = async {
                host.node().await.node_get_capabilities(NodeGetCapabilitiesRequest {}).await.is_ok()
                    && page(http, "/healthz").await.starts_with("HTTP/1.1 200")
            };
            let answered = tokio::time::timeout(PATIENCE, answer).await;
            prop_assert_eq!(answered, Ok(true), "the next caller is not served");
            Ok(())
        })
    });
    runtime.block_on(async {
        eventually(|| descriptors(&driver) <= rest).await;
        assert!(driver.is_running(), "{}", driver.log());
        assert!(!driver.log().contains("panicked"), "{}", driver.log());
        assert_eq!(host.mounts_at("u1"), 1, "the pod kept its volume");
        host.unpublish("example-store", "u1").await.expect("and can give it back");
    });
}
