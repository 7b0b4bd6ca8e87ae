//! `per-node demo`: the real service for two nodes in one process, an API server in memory, and a small kubelet
//! that drives both over their sockets through the whole of the product's page. It prints what happens, holds each
//! step to what was promised, and ends with a code that says whether all of it was kept.
//!
//! Like `main` it wires adapters and decides nothing about volumes. It touches nothing outside a temporary
//! directory that it removes.

mod describe;
mod ground;
mod kubelet;
mod namespace;
mod node;
mod page;
mod parts;
mod play;
mod report;
mod scratch;
mod serve;
mod text;
mod tree;
mod wait;

use std::io::stdout;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::adapters::cli::DemoFlags;
use crate::adapters::memory::{ApiServer, SteppedClock};
use crate::domain::time::Wall;
use ground::Ground;
use node::Cluster;
use play::Play;
use report::{BLOCK_INDENT, Outcome, Report};
use scratch::Scratch;
use text::{COLUMNS_MAX, wrap};

/// When the play begins, on its own clock.
const CURTAIN: Wall = Wall { unix_ms: 1_767_225_600_000 };

/// What is before an error on standard error.
const COMPLAINT: &str = "per-node demo: ";

/// Runs the demonstration. Call it before any thread is started: it may enter a namespace.
pub fn run(flags: &DemoFlags) -> ExitCode {
    match try_run(flags) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{COMPLAINT}{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(flags: &DemoFlags) -> anyhow::Result<ExitCode> {
    let scratch = Scratch::make("per-node-demo").context("no temporary directory")?;
    if let Some(trial) = ground::probe(scratch.path()) {
        return trial.map(|()| ExitCode::SUCCESS).map_err(anyhow::Error::msg);
    }
    let ground = ground::enter(flags.rootless, scratch.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(perform(flags, &scratch, ground.clone()));
    drop(runtime);
    ground.clear(scratch.path()).map_err(anyhow::Error::msg)?;
    drop(scratch);
    let is_kept = outcome?.broken.is_empty();
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn perform(flags: &DemoFlags, scratch: &Scratch, ground: Ground) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let clock = SteppedClock::at(CURTAIN);
    let cluster = Cluster { ground, api: ApiServer::new(&clock), clock, shutdown: CancellationToken::new() };
    let mut report = Report::new(Box::new(stdout()));
    introduce(&mut report, &cluster.ground, scratch);
    let shutdown = cluster.shutdown.clone();
    tokio::spawn(serve::cancel_when_asked(shutdown.clone()));
    let mut play = Play::begin(scratch.path(), cluster, report).await?;
    let played = tokio::select! {
        played = page::play(&mut play) => played,
        () = shutdown.cancelled() => Err(anyhow::anyhow!("a signal asks it to end")),
    };
    if let Err(error) = &played {
        play.report.promise(false, &format!("the step can be done: {error:#}"));
    }
    let outcome = play.report.outcome();
    conclude(&mut play.report, &outcome, begun);
    if flags.serve && !shutdown.is_cancelled() {
        serve::until_shutdown(&mut play).await?;
    }
    play.end().await?;
    Ok(outcome)
}

fn introduce(report: &mut Report, ground: &Ground, scratch: &Scratch) {
    report.plain("per-node demo: one PersistentVolume, one directory on each node");
    report.plain("");
    let scratch = scratch.path().display().to_string();
    for (label, text) in [
        ("service", "the real one, for two nodes, called over its CSI sockets as a kubelet does"),
        ("mounts", &ground.sentence()),
        ("API server", "in memory; its clock is stepped, so that nobody waits for it"),
        ("everything below", &scratch),
    ] {
        report.block(label, &wrap(text, COLUMNS_MAX - BLOCK_INDENT));
    }
    if !ground.is_real() {
        report.note("");
        report.note(
            "The double stands in for mounts with symlinks. It cannot show: flags that are enforced (read-only \
             among them), a target that is busy, mounts that propagate.",
        );
    }
}

fn conclude(report: &mut Report, outcome: &Outcome, begun: Instant) {
    report.plain("");
    let took = begun.elapsed().as_secs_f32();
    if outcome.broken.is_empty() {
        report.plain(&format!("All {} steps were as promised, in {took:.1} s.", outcome.steps));
        return;
    }
    report.plain(&format!("Of {} steps these were not as promised:", outcome.steps));
    for broken in &outcome.broken {
        report.plain(&format!("  {broken}"));
    }
}
