//! A flag that a loop waits for: raised any number of times, taken once. It needs no runtime.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures_util::task::AtomicWaker;

/// Wakes the one loop that waits for it.
#[derive(Debug, Default)]
pub struct Signal {
    raised: AtomicBool,
    waker: AtomicWaker,
}

impl Signal {
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Takes the flag without waiting.
    pub fn take(&self) -> bool {
        self.raised.swap(false, Ordering::AcqRel)
    }

    /// Waits until the flag is raised and takes it. Only one task may wait.
    pub async fn wait(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.take() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use futures_util::FutureExt;

    #[test]
    fn whoever_waits_goes_on_once_for_any_number_of_raises() {
        let signal = Signal::default();
        assert!(signal.wait().now_or_never().is_none());
        signal.raise();
        signal.raise();
        assert!(signal.wait().now_or_never().is_some());
        assert!(signal.wait().now_or_never().is_none() && !signal.take());
    }
}
