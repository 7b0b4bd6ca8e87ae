//! Whether the steps of a call may block the thread that they are taken on: said by whoever has seen to it, heard by the
//! adapters whose steps block.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

thread_local! {
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Restores what was said before, also where a step panics.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        MAY_BLOCK.set(self.0);
    }
}

/// Runs a call whose steps may block whichever thread they are taken on.
pub async fn scope<T>(call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    poll_fn(|context| {
        let _before = Before(MAY_BLOCK.replace(true));
        call.as_mut().poll(context)
    })
    .await
}

/// Whether the step that asks may block its thread.
#[must_use]
pub fn may_block() -> bool {
    MAY_BLOCK.get()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::Poll;

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_the_steps_of_the_call_may_block() {
        let mut first = true;
        let steps = poll_fn(move |_| {
            assert!(may_block());
            if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(1) }
        });
        let mut call = Box::pin(scope(steps));
        assert!(call.as_mut().now_or_never().is_none());
        assert!(!may_block(), "between two steps");
        assert_eq!(call.now_or_never(), Some(1));
        assert!(!may_block(), "after the last");
    }

    #[test]
    fn a_step_that_panics_takes_the_leave_along() {
        let call = AssertUnwindSafe(scope(async { panic!("as a bug would") }));
        assert!(catch_unwind(|| { call }.0.now_or_never()).is_err());
        assert!(!may_block());
    }
}
