//! Pauses between attempts: doubling, bounded, and jittered so that the nodes of a cluster do not ask in step.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use super::api_error::ApiError;
use super::settings::{RETRY_AFTER_MAX, Settings};

/// Counts failures in a row and says how long to pause after the newest.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Forgets the failures: something worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure. Answers a pause between half of and the whole doubled time, and no shorter than the server asked
    /// for, within [`RETRY_AFTER_MAX`].
    pub fn pause_after(&mut self, error: &ApiError, settings: &Settings) -> Duration {
        let doubled = doubled(settings.backoff_first, self.failures, settings.backoff_max);
        self.failures = self.failures.saturating_add(1);
        let asked = error.retry_after().unwrap_or_default().min(RETRY_AFTER_MAX);
        // Jitter comes on top of what the server asked: it may ask all nodes for the same second.
        asked.max(doubled / 2) + jitter(doubled / 2)
    }
}

/// `first` doubled `times` times, at most `max`.
#[must_use]
pub fn doubled(first: Duration, times: u32, max: Duration) -> Duration {
    1_u32.checked_shl(times).and_then(|factor| first.checked_mul(factor)).unwrap_or(max).min(max)
}

/// A random time from zero up to `most`.
#[must_use]
pub fn jitter(most: Duration) -> Duration {
    most.mul_f64(random_fraction())
}

/// A number from 0 to 1 that differs between nodes and calls. The standard library seeds its hasher from the system;
/// nothing here needs better randomness.
fn random_fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_start_again() {
        let settings = Settings::default();
        let mut backoff = Backoff::default();
        for expected_ms in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let whole = Duration::from_millis(expected_ms);
            let pause = backoff.pause_after(&ApiError::Closed, &settings);
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} of {whole:?}");
        }
        for _ in 0..100 {
            let _ = backoff.pause_after(&ApiError::Closed, &settings);
        }
        backoff.reset();
        assert!(backoff.pause_after(&ApiError::Closed, &settings) <= settings.backoff_first);
    }

    #[test]
    fn a_server_that_asks_to_wait_is_heard_within_a_bound() {
        let settings = Settings::default();
        let asks = |seconds| ApiError::Throttled { retry_after: Some(Duration::from_secs(seconds)) };
        assert!(Backoff::default().pause_after(&asks(20), &settings) >= Duration::from_secs(20));
        let bounded = RETRY_AFTER_MAX + settings.backoff_first;
        assert!(Backoff::default().pause_after(&asks(86_400), &settings) <= bounded);
    }

    #[test]
    fn jitter_stays_within_its_bound_and_varies() {
        let most = Duration::from_secs(1);
        let seen: Vec<Duration> = (0..64).map(|_| jitter(most)).collect();
        assert!(seen.iter().all(|time| *time <= most));
        assert!(seen.iter().any(|time| *time != seen[0]));
    }
}
