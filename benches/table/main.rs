//! What the driver costs beside the least it could cost, as one table of ratios, each with its goal.
//!
//! `cargo bench --bench table` as root prints it (a few words after `--` choose sections), and writes it to `target/table/`
//! with a picture of every row that has a size; `PER_NODE_BENCH_DOCS=yes` puts them into docs/ too. `PER_NODE_BENCH=quick`
//! takes small sizes: some two minutes. The driver is the static `dist` binary that the image carries, built here, or the
//! one that `PER_NODE_BINARY` names.
//!
//! Both sides of a ratio are measured in one run, in one mount namespace, and take turns call by call; no limit is a
//! constant. Nothing outside of the namespace and of a temporary directory (`TMPDIR` moves it) is touched.

mod api;
#[path = "../../tests/support/api_routes.rs"]
mod api_routes;
#[path = "../../tests/support/api_server.rs"]
#[allow(dead_code)]
mod api_server;
#[path = "../../tests/support/api_store.rs"]
#[allow(dead_code)]
mod api_store;
#[path = "../../tests/support/api_watch.rs"]
mod api_watch;
mod at_once;
mod bare;
mod beside_removal;
mod binary;
mod client;
mod driver;
mod field;
mod figure;
mod grpc_go;
mod idle;
mod memory;
mod mounts;
mod process;
mod refused;
mod removal;
mod report;
mod samples;
mod sizes;
mod start;
mod statistics;
mod steps;
mod sweep;
mod tree;

use std::path::{Path, PathBuf};

use report::Report;
use sizes::Sizes;

/// What every section is given.
pub struct Bench {
    pub sizes: Sizes,
    /// The driver that is measured.
    pub binary: PathBuf,
    /// Where the clients run: one thread, as one kubelet.
    pub runtime: tokio::runtime::Runtime,
}

/// A part of the table.
type Section = fn(&Bench, &mut Report);

const SECTIONS: [(&str, Section); 10] = [
    ("size", binary::section),
    ("mounts", mounts::section),
    ("at-once", at_once::section),
    ("refused", refused::section),
    ("statistics", statistics::section),
    ("removal", removal::section),
    ("beside-removal", beside_removal::section),
    ("sweep", sweep::section),
    ("start", start::section),
    ("rest", memory::section),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, kind, root] = arguments.as_slice()
        && mode == bare::ARGUMENT
    {
        return bare::serve(kind, Path::new(root));
    }
    // What cargo adds.
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) =
        wanted.iter().find(|name| SECTIONS.iter().all(|(known, _)| *known != name.as_str()))
    {
        eprintln!("no section {unknown}; there are {}", SECTIONS.map(|(name, _)| name).join(", "));
        std::process::exit(1);
    }
    if !nix::unistd::geteuid().is_root() {
        eprintln!("this benchmark mounts, so it needs root");
        std::process::exit(1);
    }
    let sizes = Sizes::from_environment();
    let binary = binary::find_or_build();
    // Before any thread: a namespace belongs to the thread that made it.
    field::enter_namespace();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bench = Bench { sizes, binary, runtime };
    let mut report = Report::default();
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|one| *one == name) {
            section(&bench, &mut report);
        }
    }
    report.write(&Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("table"), &bench);
}
