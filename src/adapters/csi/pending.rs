//! The calls of one volume take turns, and only so many may wait for each other.
//!
//! A call runs to its end without its caller (C16), so callers that give up and come again would pile up calls
//! behind one that hangs. Turn and bound are per volume: one that hangs does not shut out another (C19).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Calls of one volume that may be in flight, the waiting ones included. Far more than a node has pods.
pub(super) const PENDING_MAX: usize = 1024;

/// The calls in flight by volume id.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending(Arc<Mutex<BTreeMap<String, Queue>>>);

/// Those of one volume. The lock of a handle is the driver's own affair: this one only keeps calls that would wait for it
/// from holding a thread meanwhile.
#[derive(Debug, Default)]
struct Queue {
    length: usize,
    turn: Arc<AsyncMutex<()>>,
}

/// One call in flight; it is over when this is dropped, in whatever way the call ends.
#[derive(Debug)]
pub(super) struct InFlight {
    pending: Pending,
    volume_id: String,
    turn: Arc<AsyncMutex<()>>,
}

/// A call whose turn it is, until dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _guard: OwnedMutexGuard<()>,
    _in_flight: InFlight,
}

impl Pending {
    /// Admits a call, unless the volume has too many already.
    pub(super) fn admit(&self, volume_id: &str) -> Option<InFlight> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(volume_id.to_owned()).or_default();
        if queue.length >= PENDING_MAX {
            return None;
        }
        queue.length += 1;
        let turn = queue.turn.clone();
        Some(InFlight { pending: self.clone(), volume_id: volume_id.to_owned(), turn })
    }
}

impl InFlight {
    /// Waits until the calls that came before have ended.
    pub(super) async fn turn(self) -> Turn {
        let guard = self.turn.clone().lock_owned().await;
        Turn { _guard: guard, _in_flight: self }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut queues = self.pending.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut queue) = queues.entry(std::mem::take(&mut self.volume_id)) {
            queue.get_mut().length -= 1;
            if queue.get().length == 0 {
                queue.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

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

    #[test]
    fn c19_calls_of_one_volume_take_turns_in_their_order() {
        let pending = Pending::default();
        let [first, second, other] = ["a", "a", "b"].map(|id| pending.admit(id).expect("admitted"));
        let turn = first.turn().now_or_never().expect("free");
        let mut waits = Box::pin(second.turn());
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(other.turn().now_or_never().is_some());
        drop(turn);
        assert!(waits.now_or_never().is_some());
    }
}
