//! Sizes and ages for people, of times as they come in a report.

use jiff::Timestamp;
pub use per_node::adapters::human::{size, span};

/// How long before `now` `then` was, both RFC 3339; nothing where either is no time. What lies in the future is 0s.
pub fn age(now: &str, then: &str) -> Option<String> {
    let (now, then): (Timestamp, Timestamp) = (now.parse().ok()?, then.parse().ok()?);
    Some(span(u64::try_from(now.as_second() - then.as_second()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_needs_two_times_and_is_never_negative() {
        assert_eq!(age("2026-11-30T00:01:00Z", "2026-11-30T00:00:00Z").as_deref(), Some("60s"));
        assert_eq!(age("2026-11-30T00:00:00Z", "2026-11-30T00:01:00Z").as_deref(), Some("0s"));
        assert_eq!(age("2026-11-30T00:00:00Z", "yesterday"), None);
    }
}
