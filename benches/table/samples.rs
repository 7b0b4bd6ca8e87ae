//! Times that were taken, and what is read off them.

use std::time::Duration;

#[derive(Default)]
pub struct Samples {
    seconds: Vec<f64>,
}

impl Samples {
    pub fn push(&mut self, time: Duration) {
        self.seconds.push(time.as_secs_f64());
    }

    /// The time that half of them took at most, in seconds.
    pub fn p50(&self) -> f64 {
        self.at(0.5)
    }

    pub fn p99(&self) -> f64 {
        self.at(0.99)
    }

    pub fn longest(&self) -> f64 {
        self.at(1.0)
    }

    pub fn count(&self) -> usize {
        self.seconds.len()
    }

    fn at(&self, share: f64) -> f64 {
        assert!(!self.seconds.is_empty(), "nothing was measured");
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most how many there are
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        sorted[rank.max(1) - 1]
    }
}

/// A time as a person reads it.
pub fn time(seconds: f64) -> String {
    match seconds {
        micro if micro < 1e-3 => format!("{:.0} µs", micro * 1e6),
        milli if milli < 1.0 => format!("{:.2} ms", milli * 1e3),
        whole => format!("{whole:.2} s"),
    }
}

/// 1000000 as 1,000,000.
pub fn number(value: usize) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
