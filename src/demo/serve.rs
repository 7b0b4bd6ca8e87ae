//! `demo --serve`: both nodes stay up and take calls from any CSI client, until a signal.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::ground::Ground;
use super::page::STORE;
use super::play::{On, Play};

/// How often the play's clock follows the real one.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// Says how the nodes are reached, and waits.
pub async fn until_shutdown(play: &mut Play) -> anyhow::Result<()> {
    play.create_volume(&STORE)?;
    play.report.plain("");
    play.report.plain("Both nodes go on serving, with the volume example-store created anew:");
    for on in [On::One, On::Two] {
        let node = play.node(on);
        let lines = [
            format!("socket   unix://{}", node.kubelet.socket.display()),
            format!("targets  below {}", node.kubelet.dir.display()),
            format!("copies   {}", node.copies().display()),
        ];
        let name = node.name;
        play.report.plain("");
        play.report.block(name, &lines);
    }
    play.report.plain("");
    match &play.cluster.ground {
        Ground::Real(kind) => {
            play.report.plain("The mounts are in this process's namespace. To see them there:");
            let line = kind.nsenter(std::process::id());
            play.report.plain(&format!("   {line}"));
        }
        Ground::Double { .. } => {
            play.report.plain("The mounts are symlinks, to be seen from anywhere.");
        }
    }
    play.report.plain("");
    play.report.plain("Ctrl-C ends it.");
    while !play.cluster.shutdown.is_cancelled() {
        tokio::select! {
            () = tokio::time::sleep(CLOCK_STEP) => play.cluster.clock.advance(CLOCK_STEP),
            () = play.cluster.shutdown.cancelled() => {}
        }
    }
    Ok(())
}

/// SIGINT or SIGTERM ends everything in order. Without their handlers the first of them just kills.
pub async fn cancel_when_asked(shutdown: CancellationToken) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    shutdown.cancel();
}
