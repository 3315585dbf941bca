//! Waiting for one answer while others are on their way.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::future::MaybeDone;

/// Waits for something that was asked for, and takes in meanwhile what comes of what was asked for
/// before. A connection hands answers on in the order in which they were asked for, and waits until
/// each is taken: who waits for a later one and takes none of the earlier ones waits for ever.
pub(in crate::postgres) async fn await_in_order<T, F: Future + Unpin>(
    others: &mut [MaybeDone<F>],
    one: impl Future<Output = T>,
) -> T {
    let mut one = pin!(one);
    poll_fn(|context| {
        // It comes first, because what is polled for the first time asks.
        let polled = one.as_mut().poll(context);
        if polled.is_pending() {
            for other in others.iter_mut() {
                let _: Poll<()> = Pin::new(other).poll(context);
            }
        }
        polled
    })
    .await
}
