//! How many calls of one volume may wait for each other.
//!
//! A call runs to its end without its caller (C16), so callers that give up and come again would pile up calls
//! behind one that hangs. The bound is per volume: one that hangs does not shut out another (C19).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

/// Calls of one volume that may be in flight, the waiting ones included. Far more than a node has pods.
pub(super) const PENDING_MAX: usize = 1024;

/// Counts the calls in flight by volume id.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending(Arc<Mutex<BTreeMap<String, usize>>>);

/// One call in flight; it is over when this is dropped, in whatever way the call ends.
#[derive(Debug)]
pub(super) struct InFlight {
    pending: Pending,
    volume_id: String,
}

impl Pending {
    /// Admits a call, unless the volume has too many already.
    pub(super) fn admit(&self, volume_id: &str) -> Option<InFlight> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(volume_id.to_owned()).or_default();
        if *count >= PENDING_MAX {
            return None;
        }
        *count += 1;
        Some(InFlight { pending: self.clone(), volume_id: volume_id.to_owned() })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = self.pending.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = counts.entry(std::mem::take(&mut self.volume_id)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c19_one_crowded_volume_does_not_shut_out_another() {
        let pending = Pending::default();
        let mut calls: Vec<_> = (0..PENDING_MAX).map(|_| pending.admit("a").expect("admitted")).collect();
        assert!(pending.admit("a").is_none());
        assert!(pending.admit("b").is_some());
        calls.pop();
        assert!(pending.admit("a").is_some());
        drop(calls);
        assert!(pending.0.lock().expect("lock").is_empty(), "nothing is kept of a volume without calls");
    }
}
