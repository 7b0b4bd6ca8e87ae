//! What an event tells: when it was last seen, and itself as one line. Nothing is judged here.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use crate::human::span;

/// The last time that an event was seen, by whichever field carries it.
pub fn last_seen(event: &Event) -> Option<Timestamp> {
    let series =
        event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    series
        .or(event.last_timestamp.as_ref().map(|time| time.0))
        .or(event.event_time.as_ref().map(|time| time.0))
        .or(event.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

/// How long something has lasted, as kubectl writes ages.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    span(u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0))
}

/// An event as one line, as kubectl's describe has it: reason, count, age, text.
pub fn told(event: &Event, now: Timestamp) -> String {
    let count = event.series.as_ref().and_then(|series| series.count).or(event.count).unwrap_or(1);
    let times = if count > 1 { format!(" x{count}") } else { String::new() };
    let when = last_seen(event).map(|last| format!(" {} ago", age(last, now))).unwrap_or_default();
    let from = event
        .source
        .as_ref()
        .and_then(|source| source.component.as_deref())
        .or(event.reporting_component.as_deref())
        .unwrap_or("somebody");
    let text = event.message.as_deref().unwrap_or_default().trim();
    format!("event {}{times}{when} from {from}: {text}", event.reason.as_deref().unwrap_or_default())
}
