//! Waiting by a store's clock.

use std::time::Duration;

use onward_store::Clock;

use crate::limits::CLOCK_CHECK;

/// Completes when the clock's steady time may have reached `at`, or when the clock may have been set; never without cause more
/// often than every [`CLOCK_CHECK`]. The caller looks at the clock again. Cancel-safe.
pub(crate) async fn tick(clock: &dyn Clock, at: Duration) {
    let left = at.saturating_sub(clock.steady());
    match clock.moved() {
        None => tokio::time::sleep(left.min(CLOCK_CHECK)).await,
        Some(_) if left.is_zero() => {}
        Some(mut moved) => {
            moved.mark_unchanged();
            if clock.steady() < at && moved.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Completes when the clock's steady time has reached `at`. Cancel-safe.
pub(crate) async fn reached(clock: &dyn Clock, at: Duration) {
    while clock.steady() < at {
        tick(clock, at).await;
    }
}
