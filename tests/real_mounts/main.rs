//! The Linux adapter on real mounts, in a mount namespace of its own.
//!
//! Before the first thread the process enters a private mount namespace: as root directly, else by way of a user
//! namespace. What needs the real root is left out there and says so; where `PER_NODE_REQUIRE_ROOT=1` is set (in CI)
//! it runs or fails. Nothing outside of the namespace is changed, whatever happens.

mod attach_cases;
mod bench;
#[path = "../contract/mod.rs"]
mod contract;
mod detach_cases;
mod file_system_cases;
mod filtered_cases;
mod growth_cases;
mod health_cases;
mod hostile;
mod image;
mod look_cases;
mod namespace;
mod removal_cases;
mod showing_cases;
mod store_cases;
mod world;

use libtest_mimic::{Arguments, Failed, Trial};

use namespace::Entered;

/// A case: its name, and what it shows.
pub struct Case {
    name: String,
    needs_root: bool,
    left_out: bool,
    run: Box<dyn FnOnce() -> Result<(), Failed> + Send>,
}

impl Case {
    /// A case that says what it found wrong by panicking.
    pub fn new(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Case {
        let run = Box::new(move || {
            run();
            Ok(())
        });
        Case { name: name.into(), needs_root: false, left_out: false, run }
    }

    /// A case that a user namespace cannot show.
    pub fn needs_root(self) -> Case {
        Case { needs_root: true, ..self }
    }

    /// A case that lacks a tool on this machine; shown as ignored, unless everything is required.
    pub fn left_out(self) -> Case {
        Case { left_out: true, ..self }
    }
}

fn main() -> std::process::ExitCode {
    if std::env::args().nth(1).as_deref() == Some(namespace::PEER_ARGUMENT) {
        return namespace::be_a_peer();
    }
    if std::env::args().nth(1).as_deref() == Some(hostile::MEASURE_ARGUMENT) {
        return hostile::measure();
    }
    let mut arguments = Arguments::from_args();
    // One at a time: the mount table is one for all, and some cases count it.
    arguments.test_threads = Some(1);
    let entered = if arguments.list { Entered::Root } else { namespace::enter() };
    let cases = [
        bench::cases(),
        store_cases::cases(),
        removal_cases::cases(),
        file_system_cases::cases(),
        filtered_cases::cases(),
        attach_cases::cases(),
        detach_cases::cases(),
        look_cases::cases(),
        showing_cases::cases(),
        health_cases::cases(),
        growth_cases::cases(),
        hostile::cases(),
    ]
    .into_iter()
    .flatten();
    let trials = cases.map(|case| {
        let left_out = (case.left_out && !namespace::everything_is_required())
            || (case.needs_root && entered == Entered::UserNamespace);
        Trial::test(case.name, case.run).with_ignored_flag(left_out)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
