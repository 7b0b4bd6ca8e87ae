//! The contract suites on the doubles: the one in memory, and the rootless one on a directory.

#[path = "../contract/mod.rs"]
mod contract;
mod memory;
mod rootless;

use libtest_mimic::{Arguments, Trial};

use contract::{Bench, ContractCase, cases};

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = on("memory", memory::MemoryBench::new);
    trials.extend(on("rootless", rootless::RootlessBench::new));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Every case on a bench of its own.
fn on<B: Bench + 'static>(adapter: &str, bench: fn() -> B) -> Vec<Trial> {
    let trial = |(name, case): ContractCase<B>| {
        Trial::test(format!("{adapter}::{name}"), move || {
            case(&mut bench());
            Ok(())
        })
    };
    cases().into_iter().map(trial).collect()
}
