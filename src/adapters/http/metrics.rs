//! The numbers as Prometheus reads them: what the domain's tally and the ports keep in memory, under names with
//! their units, in the format that whoever asks can read. Nothing is counted here.
//!
//! Every label's values are a closed set of words; nothing that a pod or a volume is called comes into one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, header};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::Sources;
use crate::domain::health::Room;
use crate::domain::kept::WhyEmptied;
use crate::domain::refusal::Reason;
use crate::domain::tally::{StoreRoom, SweepOutcome, WaitingFor};
use crate::domain::time::Wall;

/// The first word of every name that is the driver's own.
const PREFIX: &str = "per_node";

/// What OpenMetrics is called in `Accept` and `Content-Type`.
const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_VERSION: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How the page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For whoever says that it reads it.
    OpenMetrics,
    /// Prometheus's own text, which everybody reads.
    Text,
}

impl Format {
    pub(super) fn asked_for(headers: &HeaderMap) -> Format {
        let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        match accepted.any(|value| value.contains(OPEN_METRICS)) {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => OPEN_METRICS_VERSION,
            Format::Text => prometheus_text::CONTENT_TYPE,
        }
    }

    pub(super) fn write(self, registry: &Registry) -> Result<String, fmt::Error> {
        let mut page = String::new();
        match self {
            Format::OpenMetrics => text::encode(&mut page, registry)?,
            Format::Text => prometheus_text::encode(&mut page, registry)?,
        }
        Ok(page)
    }
}

/// A registry of its own, with everything in it. It is a value: two drivers in one process have one each.
pub(super) fn registry(sources: Sources) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Process(sources.clone())));
    registry.sub_registry_with_prefix(PREFIX).register_collector(Box::new(Numbers(sources)));
    registry
}

/// What Prometheus knows of every process, under the name it has everywhere.
struct Process(Sources);

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let help = "When the process began to serve, in seconds since 1970.";
        let started = seconds(self.0.started);
        Page(encoder).gauge("process_start_time", help, Some(&Unit::Seconds), [(NONE, started)])
    }
}

/// Reads the sources anew at each scrape.
struct Numbers(Sources);

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers")
    }
}

/// One label and its value.
type Label<'a> = (&'a str, &'a str);

impl Collector for Numbers {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder);
        page.gauge(
            "build_info",
            "The version that runs.",
            None,
            [([("version", env!("CARGO_PKG_VERSION"))], 1)],
        )?;
        self.calls(&mut page)?;
        self.copies(&mut page)?;
        self.room(&mut page)?;
        self.kept(&mut page)?;
        self.sweep(&mut page)?;
        self.cluster(&mut page)?;
        self.events(&mut page)
    }
}

impl Numbers {
    fn calls(&self, page: &mut Page<'_>) -> fmt::Result {
        let Sources { tally, readiness, .. } = &self.0;
        let answers = tally.answers();
        let calls = answers.iter().map(|(&(call, code), &count)| ([("method", call), ("code", code)], count));
        page.counter("calls", "Answers to CSI calls, by method and gRPC code.", calls)?;
        let refusals = Reason::REFUSALS.map(|reason| ([("reason", reason.as_str())], tally.refusals(reason)));
        page.counter("refusals", "Refused publishes, by the reason of their event.", refusals)?;
        let ready = u64::from(readiness.reasons().is_empty());
        page.gauge("ready", "1 where /readyz says ready, else 0.", None, [(NONE, ready)])
    }

    fn copies(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = &self.0.tally;
        let counted = self.0.copies.counted();
        let mut gauge = |name, help, unit, value| page.gauge(name, help, unit, [(NONE, value)]);
        gauge("copies", "Copies in the store.", None, load(&tally.copies))?;
        gauge("copies_measured", "Copies whose bytes are in per_node_copies_bytes.", None, counted.copies)?;
        gauge(
            "copies",
            "What the measured copies take up in all, in bytes.",
            Some(&Unit::Bytes),
            counted.bytes,
        )?;
        gauge("copies_unfinished_walks", "First walks that have not ended yet.", None, counted.unfinished)?;
        gauge("strangers", "Entries of copies/ that are no copies.", None, load(&tally.strangers))?;
        gauge("trash_entries", "Copies on their way out.", None, load(&tally.trash))?;
        gauge("stuck_removals", "Removals that failed at the latest pass.", None, load(&tally.stuck_removals))
    }

    /// Left out where nobody can tell, or the file system counts no inodes: a zero would read as full.
    fn room(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(StoreRoom { bytes, inodes }) = self.0.tally.room() else { return Ok(()) };
        let counts = |room: Room| (room.total > 0).then_some(room);
        let bytes = counts(bytes);
        page.gauge(
            "store_capacity",
            "Size of the store's file system at the latest look, in bytes.",
            Some(&Unit::Bytes),
            bytes.map(|room| (NONE, room.total)),
        )?;
        page.gauge(
            "store_available",
            "What is left of it for pods, in bytes.",
            Some(&Unit::Bytes),
            bytes.map(|room| (NONE, room.available)),
        )?;
        let inodes = counts(inodes);
        page.gauge(
            "store_inodes",
            "Inodes of the store's file system at the latest look.",
            None,
            inodes.map(|room| (NONE, room.total)),
        )?;
        page.gauge(
            "store_inodes_available",
            "How many of them are left for pods.",
            None,
            inodes.map(|room| (NONE, room.available)),
        )
    }

    fn kept(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = &self.0.tally;
        let oldest = load(&tally.kept_oldest_ms) as f64 / 1000.0;
        page.gauge("trash_kept", "Removed copies that can be restored.", None, [(NONE, load(&tally.kept))])?;
        page.gauge(
            "trash_kept",
            "What those of them that were measured take up in all, in bytes.",
            Some(&Unit::Bytes),
            [(NONE, load(&tally.kept_bytes))],
        )?;
        page.gauge(
            "trash_kept_oldest",
            "How long the oldest of them has been kept, at the latest pass, in seconds.",
            Some(&Unit::Seconds),
            [(NONE, oldest)],
        )?;
        let emptied = WhyEmptied::ALL.map(|why| ([("why", why.as_str())], tally.emptied_for(why)));
        page.counter("trash_kept_emptied", "Kept copies that went, by why.", emptied)?;
        page.counter("trash_restored", "Kept copies that were restored.", [(NONE, load(&tally.restored))])
    }

    fn sweep(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = &self.0.tally;
        let outcomes =
            SweepOutcome::ALL.map(|outcome| ([("outcome", outcome.as_str())], tally.sweeps(outcome)));
        page.counter("sweep_decisions", "What sweeps decided about copies, by outcome.", outcomes)?;
        let waiting = tally.waiting();
        let removals = WaitingFor::ALL
            .map(|for_what| ([("for", for_what.as_str())], u64::from(waiting == Some(for_what))));
        page.gauge(
            "sweep_over_limit",
            "Copies that wait because one pass would remove more than --sweep-limit.",
            None,
            [(NONE, load(&tally.over_limit))],
        )?;
        page.counter(
            "sweeps_stopped",
            "Passes that were stopped so.",
            [(NONE, load(&tally.sweeps_stopped))],
        )?;
        page.gauge("removals_waiting", "1 where removals wait for a person, by why.", None, removals)?;
        page.gauge(
            "removals_searching",
            "Copies whose removal waits until the watch has passed the API server's head.",
            None,
            [(NONE, load(&tally.removals_searching))],
        )
    }

    fn cluster(&self, page: &mut Page<'_>) -> fmt::Result {
        let Sources { tally, clock, cluster, .. } = &self.0;
        let failures = tally.sync_failures();
        let failures = failures.iter().map(|(&why, &count)| ([("why", why)], count));
        page.counter("sync_failures", "Reads of the API server that failed, by why.", failures)?;
        let calls = tally.api_calls();
        let calls = calls.iter().map(|(&(call, end), &count)| ([("call", call), ("end", end)], count));
        page.counter("api_calls", "Calls to the API server, by kind and by how they ended.", calls)?;
        let Some(cluster) = cluster else { return Ok(()) };
        let health = cluster.watch_health();
        page.gauge(
            "watch_synced",
            "1 where a complete list was read since the start, else 0.",
            None,
            [(NONE, u64::from(health.synced))],
        )?;
        let live = u64::from(health.live);
        page.gauge("watch_live", "1 where the watch is open now, else 0.", None, [(NONE, live)])?;
        let last = health.last_sync.map(|at| {
            let ago = u64::try_from(clock.monotonic().since(at).as_millis()).unwrap_or(u64::MAX);
            (NONE, seconds(Wall { unix_ms: clock.wall().unix_ms.saturating_sub(ago) }))
        });
        page.gauge(
            "last_sync_timestamp",
            "When the API server last brought something, in seconds since 1970.",
            Some(&Unit::Seconds),
            last,
        )
    }

    fn events(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = &self.0.tally;
        page.gauge(
            "events_queued",
            "Events that wait to be posted.",
            None,
            [(NONE, load(&tally.events_queued))],
        )?;
        page.counter("events_posted", "Events created or patched.", [(NONE, load(&tally.events_posted))])?;
        page.counter(
            "events_dropped",
            "Events given up: no room in the queue, or refused by the API server for good.",
            [(NONE, load(&tally.events_dropped))],
        )?;
        page.counter(
            "event_failures",
            "Attempts to post an event that failed.",
            [(NONE, load(&tally.event_failures))],
        )
    }
}

/// No labels.
const NONE: [Label<'static>; 0] = [];

fn seconds(at: Wall) -> f64 {
    at.unix_ms as f64 / 1000.0
}

fn load(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// Writes families: one description, then each sample with its labels.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn counter<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([Label<'l>; N], u64)>,
    ) -> fmt::Result {
        let samples = samples.into_iter().map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.family(name, help, None, samples)
    }

    fn gauge<'l, const N: usize, V>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl IntoIterator<Item = ([Label<'l>; N], V)>,
    ) -> fmt::Result
    where
        ConstGauge<V>: EncodeMetric,
    {
        let samples = samples.into_iter().map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.family(name, help, unit, samples)
    }

    /// A family without a sample is left out.
    fn family<'l, const N: usize, M: EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        samples: impl Iterator<Item = ([Label<'l>; N], M)>,
    ) -> fmt::Result {
        let mut samples = samples.peekable();
        let Some((_, first)) = samples.peek() else { return Ok(()) };
        let help = help.strip_suffix('.').unwrap_or(help);
        let mut family = self.0.encode_descriptor(name, help, unit, first.metric_type())?;
        for (labels, metric) in samples {
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
