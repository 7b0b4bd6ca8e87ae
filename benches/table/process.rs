//! A process that ends with its value, and what the kernel tells about it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

/// What times in /proc are counted in, on every architecture that Linux has today.
const TICK_MS: u64 = 10;

pub struct Process(pub Child);

/// How busy a process has been so far.
pub struct Busy {
    /// Of all its threads, also of those that ended. In steps of the kernel's tick, mostly 10 ms.
    pub on_cpu: Duration,
    /// By thread, how often it began to wait of its own accord, which is as often as it was woken.
    waits: BTreeMap<OsString, u64>,
}

impl Busy {
    /// How often a thread was woken since `before`. One that ended meanwhile was woken for that.
    pub fn wake_ups_since(&self, before: &Busy) -> u64 {
        let waits_before = |thread| before.waits.get(thread).copied().unwrap_or(0);
        let woken: u64 =
            self.waits.iter().map(|(thread, waits)| waits.saturating_sub(waits_before(thread))).sum();
        let ended = before.waits.keys().filter(|thread| !self.waits.contains_key(*thread)).count();
        woken + ended as u64
    }
}

/// Resident memory in MiB.
pub struct Memory {
    pub now: f64,
    pub peak: f64,
}

impl Process {
    pub fn memory(&self) -> Memory {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let mebibytes = |name| field(&status, name) as f64 / 1024.0;
        Memory { now: mebibytes("VmRSS:"), peak: mebibytes("VmHWM:") }
    }

    pub fn busy(&self) -> Busy {
        let process = PathBuf::from(format!("/proc/{}", self.0.id()));
        let mut waits = BTreeMap::new();
        for thread in fs::read_dir(process.join("task")).expect("it runs") {
            let thread = thread.expect("a thread");
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            waits.insert(thread.file_name(), field(&status, "voluntary_ctxt_switches:"));
        }
        // proc_pid_stat(5): behind the name, which may hold anything, utime and stime are the 12th and 13th.
        let stat = fs::read_to_string(process.join("stat")).expect("it runs");
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum();
        Busy { on_cpu: Duration::from_millis(ticks * TICK_MS), waits }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
