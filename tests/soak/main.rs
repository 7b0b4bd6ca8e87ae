//! Soak and load: the real binary on real mounts, spoken to over its socket as the kubelet does, beside an API server that
//! has much to tell, is late, is away, or refuses. After each case the driver must be at rest as it was after its first pod
//! (`picture`): no mount, directory, record, descriptor or thread more, and no more memory than a named bound.
//!
//! In `cargo test` each case runs at a small size, all at once because most of what they do is wait; `PER_NODE_SOAK=all`
//! runs them one after the other at the sizes of docs/soak.md, which has the figures that each case prints.
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
mod crowd;
mod foreign;
#[path = "../real_mounts/namespace.rs"]
#[allow(dead_code)]
mod namespace;
#[path = "../support/node.rs"]
#[allow(dead_code)]
mod node;
mod outage;
mod picture;
mod pods;
mod soak;
mod sweeps;
mod volumes;

use libtest_mimic::{Arguments, Trial};

/// A case: its name, and what shows it by panicking where it is not so. It is given its own name, for its figures.
type Case = (&'static str, fn(&'static str));

/// One of two sizes: that of `cargo test`, and that of a run by hand.
pub fn size<T>(short: T, all: T) -> T {
    if is_whole() { all } else { short }
}

fn is_whole() -> bool {
    std::env::var_os("PER_NODE_SOAK").is_some_and(|value| value == "all")
}

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    let cases: Vec<Case> =
        [sweeps::cases(), crowd::cases(), outage::cases(), volumes::cases(), foreign::cases()].concat();
    arguments.test_threads = Some(size(cases.len(), 1));
    if !arguments.list {
        namespace::enter();
    }
    let trials = cases.into_iter().map(|(name, case)| {
        Trial::test(name, move || {
            case(name);
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
