//! SIGKILL at every step (C16, C23, C40): the real binary on real mounts, killed before and after each system call that
//! changes something, then started again.
//!
//! `tracer` kills and `steps` says where; the cases say what must be so afterwards, by the kernel's mount table and by
//! what lies on disk. In `cargo test` the steps of a publish and an unpublish are tried, and some rounds of many calls
//! that are killed at a random instant; `PER_NODE_CRASH=all` tries every step of a start, a sweep and the trash too.
//! The process enters a private mount namespace before it has a thread; nothing outside of it is changed.

#[path = "../support/api_routes.rs"]
mod api_routes;
#[path = "../support/api_server.rs"]
#[allow(dead_code)]
mod api_server;
#[path = "../support/api_store.rs"]
#[allow(dead_code)]
mod api_store;
#[path = "../support/api_watch.rs"]
mod api_watch;
mod many;
#[path = "../real_mounts/namespace.rs"]
#[allow(dead_code)]
mod namespace;
#[path = "../support/node.rs"]
#[allow(dead_code)]
mod node;
mod publish;
mod registers;
mod stage;
mod start;
mod steps;
mod sweep;
mod sweep_of_steps;
mod traced;
mod tracer;
#[path = "../registration/watcher.rs"]
#[allow(dead_code)]
mod watcher;

use libtest_mimic::{Arguments, Trial};

/// A case: its name, and what shows it by panicking where it is not so.
type Case = (&'static str, fn());

/// Whether everything is to be tried, however long it takes.
pub fn everything() -> bool {
    std::env::var_os("PER_NODE_CRASH").is_some_and(|value| value == "all")
}

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    // The cases start many processes each.
    arguments.test_threads = Some(1);
    if !arguments.list {
        namespace::enter();
    }
    let long = [start::cases(), sweep::cases()].into_iter().flatten().filter(|_| everything());
    let cases = publish::cases().into_iter().chain(many::cases()).chain(long);
    let trials = cases.map(|(name, case)| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
