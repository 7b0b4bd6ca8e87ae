//! From a world in which an invariant breaks to the calmest of its kind in which one still does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::options::{CALMER, Calm};
use crate::simulation::run;

/// The most steps that a world has.
const STEPS_MAX: u32 = 700;

fn breaks(seed: u64, calm: &Calm) -> bool {
    !matches!(catch_unwind(AssertUnwindSafe(|| run(seed, calm, None))), Ok(Ok(_)))
}

/// Takes out whatever is not needed, then looks for the fewest steps. Another invariant may break than the first one: that is
/// a finding as well.
pub fn shrink(seed: u64, from: &Calm) -> Calm {
    let mut calm = from.clone();
    for (name, _) in CALMER.into_iter().filter(|(name, _)| !from.without.contains(name)) {
        let mut calmer = calm.clone();
        calmer.without.push(name);
        if breaks(seed, &calmer) {
            calm = calmer;
        }
    }
    let (mut too_few, mut enough) = (0, calm.steps_max.unwrap_or(STEPS_MAX));
    // More steps need not break what fewer do: this finds some world that breaks, and nearly the smallest.
    while too_few + 1 < enough {
        let steps = too_few.midpoint(enough);
        if breaks(seed, &Calm { steps_max: Some(steps), ..calm.clone() }) {
            enough = steps;
        } else {
            too_few = steps;
        }
    }
    Calm { steps_max: Some(enough), ..calm }
}
