//! The numbers as Prometheus reads them: what the domain's tally and the ports keep in memory, under names with
//! their units. Nothing is counted here.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::Sources;
use crate::domain::kept::WhyEmptied;
use crate::domain::refusal::Reason;
use crate::domain::tally::{SweepOutcome, WaitingFor};

/// The first word of every name.
const PREFIX: &str = "per_node";

/// A registry of its own, with everything in it. It is a value: two drivers in one process have one each.
pub(super) fn registry(sources: Sources) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Numbers(sources)));
    registry
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
        page.gauge("ready", "Whether /readyz says ready.", None, [(NONE, ready)])
    }

    fn copies(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = &self.0.tally;
        let counted = self.0.copies.counted();
        let mut gauge = |name, help, unit, value| page.gauge(name, help, unit, [(NONE, value)]);
        gauge("copies", "Copies in the store.", None, load(&tally.copies))?;
        gauge("copies_measured", "Copies whose bytes are in per_node_copies_bytes.", None, counted.copies)?;
        gauge("copies", "What the measured copies take up in all.", Some(&Unit::Bytes), counted.bytes)?;
        gauge("copies_unfinished_walks", "First walks that have not ended yet.", None, counted.unfinished)?;
        gauge("strangers", "Entries of copies/ that are no copies.", None, load(&tally.strangers))?;
        gauge("trash_entries", "Copies on their way out.", None, load(&tally.trash))?;
        gauge("stuck_removals", "Removals that failed at the latest pass.", None, load(&tally.stuck_removals))
    }

    fn kept(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = &self.0.tally;
        let oldest = load(&tally.kept_oldest_ms) as f64 / 1000.0;
        page.gauge("trash_kept", "Removed copies that can be restored.", None, [(NONE, load(&tally.kept))])?;
        page.gauge(
            "trash_kept",
            "What those of them that were measured take up in all.",
            Some(&Unit::Bytes),
            [(NONE, load(&tally.kept_bytes))],
        )?;
        page.gauge(
            "trash_kept_oldest",
            "How long the oldest of them has been kept, at the latest pass.",
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
            "Whether a complete list was read.",
            None,
            [(NONE, u64::from(health.synced))],
        )?;
        page.gauge("watch_live", "Whether the watch is open now.", None, [(NONE, u64::from(health.live))])?;
        let age = health.last_sync.map(|at| (NONE, clock.monotonic().since(at).as_secs_f64()));
        page.gauge(
            "last_sync_age",
            "Time since the API server last brought something.",
            Some(&Unit::Seconds),
            age,
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
            "Events that the queue had no room for.",
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
