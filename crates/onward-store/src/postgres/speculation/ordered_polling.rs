//! Ordered polling: waiting for one reply while earlier ones arrive.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_util::future::MaybeDone;

/// Waits for `one`, and polls the earlier requests in `others` until it is ready.
///
/// A connection delivers replies in the order of the requests, and waits until each is taken.
/// Waiting for a later reply without taking the earlier ones would never end.
pub(in crate::postgres) async fn await_in_order<T, F: Future + Unpin>(
    others: &mut [MaybeDone<F>],
    one: impl Future<Output = T>,
) -> T {
    let mut one = pin!(one);
    poll_fn(|context| {
        // `one` is polled first: the first poll of a request sends it, and its sender expects that
        // order.
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
