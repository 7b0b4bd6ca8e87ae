//! The refusals of the last hour, for people who look: which volume, which pod, why, how often, from when until when. Events
//! tell the pods' owners; this is what a page shows. It is bounded, pure, and gone with the process.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event_series::cut;
use super::handle::Handle;
use super::pod::PodReference;
use super::refusal::Reason;
use super::time::Wall;

/// How long a refusal is remembered after it came last.
pub const REMEMBERED: Duration = Duration::from_secs(3600);
/// How many are remembered at once; the one that came last longest ago gives way.
pub const REFUSALS_MAX: usize = 256;
/// The longest message, in bytes: an event has room for more.
const MESSAGE_LENGTH_MAX: usize = 512;

/// What makes two refusals one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusalKey {
    /// `None` where what was asked for is no handle.
    pub handle: Option<Handle>,
    /// `None` where the request named none.
    pub pod: Option<PodReference>,
    pub reason: Reason,
    pub message: String,
}

/// How often, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    pub count: u64,
    pub first: Wall,
    pub last: Wall,
}

/// All that are remembered.
#[derive(Debug, Default)]
pub struct RecentRefusals(BTreeMap<RefusalKey, Repeated>);

impl RefusalKey {
    /// The key of a refusal, its message cut.
    pub fn new(
        handle: Option<Handle>,
        pod: Option<PodReference>,
        reason: Reason,
        message: &str,
    ) -> RefusalKey {
        let message = cut(message, MESSAGE_LENGTH_MAX).to_owned();
        RefusalKey { handle, pod, reason, message }
    }
}

impl RecentRefusals {
    pub fn record(&mut self, key: RefusalKey, now: Wall) {
        self.forget_old(now);
        if let Some(known) = self.0.get_mut(&key) {
            known.count = known.count.saturating_add(1);
            known.last = now;
            return;
        }
        if self.0.len() >= REFUSALS_MAX
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, known)| known.last).map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(key, Repeated { count: 1, first: now, last: now });
    }

    /// Those of the last hour, the latest first.
    pub fn latest(&mut self, now: Wall) -> Vec<(RefusalKey, Repeated)> {
        self.forget_old(now);
        let mut latest: Vec<_> = self.0.iter().map(|(key, known)| (key.clone(), *known)).collect();
        latest.sort_by_key(|(_, known)| std::cmp::Reverse(known.last));
        latest
    }

    fn forget_old(&mut self, now: Wall) {
        self.0.retain(|_, known| now.since(known.last) <= REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(message: &str) -> RefusalKey {
        RefusalKey::new(Handle::parse("h").ok(), None, Reason::VolumeHeld, message)
    }

    fn at(seconds: u64) -> Wall {
        Wall { unix_ms: seconds * 1000 }
    }

    #[test]
    fn what_repeats_is_counted_and_the_latest_comes_first() {
        let mut refusals = RecentRefusals::default();
        refusals.record(key("a"), at(1));
        refusals.record(key("b"), at(2));
        refusals.record(key("a"), at(3));
        let repeated = |count, first, last| Repeated { count, first: at(first), last: at(last) };
        let latest = refusals.latest(at(4));
        assert_eq!(latest, [(key("a"), repeated(2, 1, 3)), (key("b"), repeated(1, 2, 2))]);
    }

    #[test]
    fn an_hour_after_it_came_last_a_refusal_is_forgotten() {
        let mut refusals = RecentRefusals::default();
        refusals.record(key("a"), at(0));
        refusals.record(key("a"), at(3000));
        assert_eq!(refusals.latest(at(6600)).len(), 1);
        assert_eq!(refusals.latest(at(6601)), []);
    }

    #[test]
    fn the_number_is_bounded_and_what_came_longest_ago_gives_way() {
        let mut refusals = RecentRefusals::default();
        for number in 0..=REFUSALS_MAX {
            refusals.record(key(&number.to_string()), at(number as u64));
        }
        let latest = refusals.latest(at(300));
        assert_eq!(latest.len(), REFUSALS_MAX);
        assert!(latest.iter().all(|(kept, _)| kept != &key("0")));
    }

    #[test]
    fn c33_a_long_message_is_cut_at_a_character() {
        assert_eq!(key(&"ü".repeat(1000)).message, "ü".repeat(MESSAGE_LENGTH_MAX / 2));
    }
}
