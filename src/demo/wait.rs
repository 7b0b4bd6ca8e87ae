//! Waiting for what the service does by itself: bounded, and no longer than it takes.

use std::time::{Duration, Instant};

/// How long anything is waited for; a slow machine needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Looks until it is so. False where it never was.
pub async fn until(is_so: impl AsyncFn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so().await {
        if begun.elapsed() >= PATIENCE {
            return false;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    true
}
