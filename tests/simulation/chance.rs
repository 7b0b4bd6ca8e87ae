//! The one source of chance: numbers that a seed fixes.

/// SplitMix64; small, fast, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True this many times in a thousand.
    pub fn in_thousand(&mut self, times: u32) -> bool {
        self.next() % 1000 < u64::from(times)
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }

    /// An index, each as likely as its weight says. The weights are not all zero.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let all: u32 = weights.iter().sum();
        let mut at = self.next() % u64::from(all);
        for (index, &weight) in weights.iter().enumerate() {
            if at < u64::from(weight) {
                return index;
            }
            at -= u64::from(weight);
        }
        weights.len() - 1
    }
}
