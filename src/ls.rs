//! `per-node ls`: what this node has, from the store's records and the kernel's mounts, also while nothing serves. It asks no
//! API server, takes no lock, and changes nothing.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use per_node::adapters::cli::{LsFlags, LsFormat};
use per_node::adapters::event_log::EventLog;
use per_node::adapters::http::{add_trash, json, node_report};
use per_node::adapters::human::{size, span};
use per_node::adapters::linux::copies::LinuxCopies;
use per_node::adapters::linux::mounts::{Abilities, LinuxMounts};
use per_node::adapters::linux::records::SlotRecords;
use per_node::adapters::linux::store::StoreDirs;
use per_node::adapters::linux::target::resolve_kubelet_dir;
use per_node::adapters::system_clock::SystemClock;
use per_node::adapters::table::{Cell, Table};
use per_node::domain::handle::Handle;
use per_node::domain::pod::Pod;
use per_node::domain::target::KubeletDir;
use per_node::domain::time::Wall;
use per_node::domain::use_cases::driver::{Brakes, Driver, Ports, Settings};
use per_node::domain::use_cases::report::{CopyReport, Report, Wanted};
use per_node::ports::clock::Clock;
use per_node::ports::records::Records;

/// What is not there, or not known.
const NONE: &str = "-";
/// Where the kernel says what the host is called.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// Nothing here is driven by time.
const NEVER: Duration = Duration::MAX;

/// Looks, and prints what there is.
pub fn run(flags: &LsFlags) -> Result<()> {
    let handle = flags.handle.as_deref().map(Handle::parse).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    let driver = driver(flags)?;
    let wanted = Wanted { handle, after: None, copies_max: usize::MAX };
    let report = runtime.block_on(driver.look(&wanted, flags.sizes))?;
    let now = SystemClock::default().wall();
    let text = match flags.format {
        LsFormat::Table => table(&report, now).into_bytes(),
        LsFormat::Json => {
            let mut told = node_report(&driver, &node_name(flags), report, now);
            add_trash(&mut told, driver.trash_on_record(), wanted.handle.as_ref());
            [json(&told)?, b"\n".to_vec()].concat()
        }
    };
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("standard output"),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A driver that only looks: its records cannot be written, and nobody drives its loops.
fn driver(flags: &LsFlags) -> Result<Driver> {
    let store = StoreDirs::look(&flags.store).map_err(|failure| {
        anyhow!("--store: no store that can be looked at: {}", failure.at(&flags.store))
    })?;
    let records = SlotRecords::look(&store)
        .map_err(|failure| anyhow!("--store: the records cannot be read: {}", failure.at(store.path())))?;
    // A kubelet's directory that is not there is nobody's: its targets are told by their paths.
    let kubelet_dir = resolve_kubelet_dir(&flags.kubelet_dir)
        .unwrap_or_else(|_| KubeletDir::new(flags.kubelet_dir.clone(), flags.kubelet_dir.clone()));
    let driver_name = records.marker().map(|marker| marker.driver_name).unwrap_or_default();
    let store = Arc::new(store);
    let ports = Ports {
        mounts: Arc::new(LinuxMounts::new(store.clone(), kubelet_dir.clone(), Abilities::found())),
        copies: Arc::new(LinuxCopies::new(store, 0)),
        records: Arc::new(records),
        clock: Arc::new(SystemClock::default()),
        sink: Arc::new(EventLog),
        cluster: None,
    };
    let settings = Settings {
        driver_name,
        node_name: String::new(),
        kubelet_dir,
        sweep_every: NEVER,
        event_window: NEVER,
        brakes: Brakes::default(),
    };
    Ok(Driver::new(ports, settings, Arc::default(), Arc::default()))
}

fn node_name(flags: &LsFlags) -> String {
    let host = || std::fs::read_to_string(HOST_NAME).unwrap_or_default().trim().to_owned();
    flags.node_id.clone().filter(|name| !name.is_empty()).unwrap_or_else(host)
}

fn table(report: &Report, now: Wall) -> String {
    let mut table = Table::new(&["HANDLE", "SIZE", "INODES", "HOLDER", "SINCE"]);
    for copy in &report.copies {
        table.row(row(copy, now));
    }
    table.render(io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// A pod by name, else by UID, else by the path of its mount.
fn called(pod: &Pod) -> String {
    match (&pod.name, &pod.uid) {
        (Some(name), _) => name.to_string(),
        (None, Some(uid)) => uid.as_str().to_owned(),
        (None, None) => pod.target.as_path().display().to_string(),
    }
}

fn row(copy: &CopyReport, now: Wall) -> Vec<Cell> {
    let usage = copy.measured.map(|measured| measured.usage);
    let holder = match (copy.holders.first(), copy.leftovers) {
        (Some(holder), _) => called(&holder.pod),
        (None, 0) => NONE.to_owned(),
        (None, _) => "(a mount)".to_owned(),
    };
    let others = copy.holders.len().saturating_sub(1);
    let since = copy.holders.iter().filter_map(|holder| holder.since).min();
    let none = || NONE.to_owned();
    vec![
        copy.handle.as_str().into(),
        usage.map_or_else(none, |usage| size(usage.used_bytes)).into(),
        usage.map_or_else(none, |usage| usage.used_inodes.to_string()).into(),
        if others == 0 { holder.into() } else { format!("{holder} +{others}").into() },
        since.map_or_else(none, |since| span(now.since(since).as_secs())).into(),
    ]
}
