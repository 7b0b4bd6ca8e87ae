//! Pods as the kubelet and they themselves go about it: published, written in, refused, unpublished, forgotten.

use std::fs;
use std::io::Write;

use futures_util::{StreamExt, stream};
use tonic::{Code, Status};

use crate::node::Node;
use crate::soak::PATIENCE;

/// Calls that are under way at once.
pub const CALLS: usize = 64;

/// One pod's life: it starts, adds a line to its volume, and ends without a trace.
pub async fn live(node: &Node, handle: &str, pod: &str) {
    start(node, handle, pod).await;
    write_line(node, pod);
    end(node, handle, pod).await;
}

/// The pod's volume is published.
pub async fn start(node: &Node, handle: &str, pod: &str) {
    publish(node, handle, pod).await.unwrap_or_else(|status| panic!("{pod} on {handle}: {status}"));
}

/// Another pod asks for the volume and is refused. The kubelet then forgets the volume.
pub async fn refused(node: &Node, handle: &str, pod: &str) {
    let status = publish(node, handle, pod).await.expect_err("the volume is held");
    assert_eq!(status.code(), Code::FailedPrecondition, "{pod} on {handle}: {status}");
    forget(node, pod);
}

/// The pod's volume is unpublished, and its directory goes.
pub async fn end(node: &Node, handle: &str, pod: &str) {
    let ended = answered(node.unpublishing(handle, pod)).await;
    ended.unwrap_or_else(|status| panic!("{pod} on {handle}: {status}"));
    forget(node, pod);
}

/// For each number below `end`, `CALLS` at once.
pub async fn each(end: usize, call: impl AsyncFn(usize)) {
    stream::iter(0..end).map(|number| call(number)).buffer_unordered(CALLS).collect::<Vec<()>>().await;
}

/// A pod writes into its volume.
pub fn write_line(node: &Node, pod: &str) {
    let file = node.target(pod).join("lines");
    let mut file = fs::File::options().create(true).append(true).open(file).expect("its file");
    writeln!(file, "{pod}").expect("the pod can write");
}

/// Which pods have written into a copy, in their order.
pub fn lines(node: &Node, handle: &str) -> Vec<String> {
    let text = fs::read_to_string(node.copy(handle).join("lines")).expect("the copy's file");
    text.lines().map(str::to_owned).collect()
}

async fn publish(node: &Node, handle: &str, pod: &str) -> Result<(), Status> {
    answered(node.publishing(handle, pod)).await
}

async fn answered(call: impl Future<Output = Result<(), Status>>) -> Result<(), Status> {
    tokio::time::timeout(PATIENCE, call).await.expect("an answer")
}

/// What a kubelet does last: each directory of the pod goes by itself, so one that is not empty is found.
fn forget(node: &Node, pod: &str) {
    let target = node.target(pod);
    let volume = target.parent().expect("the volume's directory");
    fs::remove_file(volume.join("vol_data.json")).expect("the kubelet's note");
    for directory in volume.ancestors().take_while(|directory| !directory.ends_with("pods")) {
        fs::remove_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    }
}
