//! Awaiting several things, the same way each time.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Which of two came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
}

/// Awaits two and answers the first that is there, of both the first; the other is dropped, and so cancelled.
///
/// ```
/// use std::time::Duration;
/// use onward::Failure;
/// use onward::orchestration::{Either, OrchestrationContext, select};
///
/// async fn paid_in_time(context: &OrchestrationContext) -> Result<bool, Failure> {
///     let paid = context.event::<u64>("paid")?;
///     let late = context.timer(Duration::from_secs(24 * 3600));
///     Ok(matches!(select(paid, late).await, Either::First(_)))
/// }
/// ```
pub async fn select<A: IntoFuture, B: IntoFuture>(first: A, second: B) -> Either<A::Output, B::Output> {
    let (mut first, mut second) = (pin!(first.into_future()), pin!(second.into_future()));
    poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}

/// Awaits all and answers what they came to, in their order.
pub async fn join_all<I>(all: I) -> Vec<<I::Item as IntoFuture>::Output>
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    // All begin before any is awaited.
    let mut waiting: Vec<_> = all.into_iter().map(|one| Some(Box::pin(one.into_future()))).collect();
    let mut outputs: Vec<Option<_>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_over = true;
        for (one, output) in waiting.iter_mut().zip(&mut outputs) {
            if let Some(future) = one {
                match future.as_mut().poll(context) {
                    Poll::Ready(there) => (*one, *output) = (None, Some(there)),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Awaits all and answers what they came to, in their order, or the first failure that is there; the others are dropped then, and so cancelled.
///
/// # Errors
/// The first failure.
pub async fn try_join_all<I, T, E>(all: I) -> Result<Vec<T>, E>
where
    I: IntoIterator,
    I::Item: IntoFuture<Output = Result<T, E>>,
{
    let mut waiting: Vec<_> = all.into_iter().map(|one| Some(Box::pin(one.into_future()))).collect();
    let mut outputs: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_over = true;
        for (one, output) in waiting.iter_mut().zip(&mut outputs) {
            if let Some(future) = one {
                match future.as_mut().poll(context) {
                    Poll::Ready(Ok(there)) => (*one, *output) = (None, Some(there)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    Ok(outputs.into_iter().flatten().collect())
}

/// Awaits many and answers the first that is there, with its place; of several the one of the lowest place. The others are dropped, and so
/// cancelled. Of none it waits for ever, which an orchestration cannot.
pub async fn select_all<I>(all: I) -> (usize, <I::Item as IntoFuture>::Output)
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let mut waiting: Vec<_> = all.into_iter().map(|one| Box::pin(one.into_future())).collect();
    poll_fn(|context| {
        for (place, one) in waiting.iter_mut().enumerate() {
            if let Poll::Ready(output) = one.as_mut().poll(context) {
                return Poll::Ready((place, output));
            }
        }
        Poll::Pending
    })
    .await
}
