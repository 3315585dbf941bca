//! Deterministic ways to await several futures.

use std::convert::Infallible;
use std::future::{Future, IntoFuture, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::Poll;

use super::future_set::FutureSet;

/// The first of two results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
}

/// Awaits two futures and returns the first result. If both are ready, it returns that of `first`.
/// The other future is dropped, and so cancelled.
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

/// Awaits all futures and returns their outputs, in their order.
pub async fn join_all<I>(all: I) -> Vec<<I::Item as IntoFuture>::Output>
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    // All futures begin before any is awaited.
    let mut all = FutureSet::new(all.into_iter().map(IntoFuture::into_future));
    let mut outputs: Vec<Option<_>> = (0..all.len()).map(|_| None).collect();
    poll_fn(|context| {
        let keep = |place: usize, output| {
            outputs[place] = Some(output);
            ControlFlow::<Infallible>::Continue(())
        };
        all.poll(context, keep).map(drop)
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Awaits all futures and returns their outputs, in their order, or the first failure. After a
/// failure the other futures are dropped, and so cancelled.
///
/// # Errors
/// The first failure.
pub async fn try_join_all<I, T, E>(all: I) -> Result<Vec<T>, E>
where
    I: IntoIterator,
    I::Item: IntoFuture<Output = Result<T, E>>,
{
    let mut all = FutureSet::new(all.into_iter().map(IntoFuture::into_future));
    let mut outputs: Vec<Option<T>> = (0..all.len()).map(|_| None).collect();
    let failed = poll_fn(|context| {
        let keep = |place: usize, output: Result<T, E>| match output {
            Ok(output) => {
                outputs[place] = Some(output);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        };
        all.poll(context, keep)
    });
    match failed.await {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(outputs.into_iter().flatten().collect()),
    }
}

/// Awaits many futures and returns the first output with its index. If several are ready, the
/// lowest index wins. The other futures are dropped, and so cancelled. Without futures it waits for
/// ever, which no orchestration can do.
pub async fn select_all<I>(all: I) -> (usize, <I::Item as IntoFuture>::Output)
where
    I: IntoIterator,
    I::Item: IntoFuture,
{
    let mut all = FutureSet::new(all.into_iter().map(IntoFuture::into_future));
    poll_fn(|context| match all.poll(context, |place, output| ControlFlow::Break((place, output))) {
        Poll::Ready(ControlFlow::Break(first)) => Poll::Ready(first),
        Poll::Ready(ControlFlow::Continue(())) | Poll::Pending => Poll::Pending,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use tokio::sync::oneshot::{self, Receiver, Sender};

    use super::*;

    const MANY: usize = 16_000;

    type Sent = Result<usize, usize>;

    /// Returns futures that count their polls, and the senders that end them.
    fn many(count: usize, polls: &Cell<usize>) -> (Vec<Option<Sender<Sent>>>, Vec<impl Future<Output = Sent>>) {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| oneshot::channel()).unzip();
        let counting = |mut receiver: Receiver<Sent>| {
            poll_fn(move |context| {
                polls.set(polls.get() + 1);
                Pin::new(&mut receiver).poll(context).map(Result::unwrap)
            })
        };
        (senders.into_iter().map(Some).collect(), receivers.into_iter().map(counting).collect())
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns indices in a shuffled order.
    fn shuffled() -> impl Iterator<Item = usize> {
        (0..MANY).map(|number| number * 7919 % MANY)
    }

    /// Ends the futures one after the other, and polls after each.
    fn last<F: Future>(mut joined: Pin<&mut F>, mut senders: Vec<Option<Sender<Sent>>>) -> F::Output {
        assert!(poll(joined.as_mut()).is_pending());
        let mut last = Poll::Pending;
        for place in shuffled() {
            assert!(last.is_pending());
            senders[place].take().unwrap().send(Ok(place)).unwrap();
            last = poll(joined.as_mut());
        }
        let Poll::Ready(output) = last else { panic!("all have ended") };
        output
    }

    /// Shows: D4, D11
    #[test]
    fn a_join_polls_each_future_once_and_once_for_its_end() {
        let polls = Cell::new(0);
        let (senders, futures) = many(MANY, &polls);
        let outputs = last(pin!(join_all(futures)), senders);
        assert!(outputs.into_iter().map(Result::unwrap).eq(0..MANY));
        assert_eq!(polls.get(), 2 * MANY);
    }

    /// Shows: D4, D11
    #[test]
    fn a_join_that_may_fail_polls_each_future_once_and_once_for_its_end() {
        let polls = Cell::new(0);
        let (senders, futures) = many(MANY, &polls);
        let outputs = last(pin!(try_join_all(futures)), senders).unwrap();
        assert!(outputs.into_iter().eq(0..MANY));
        assert_eq!(polls.get(), 2 * MANY);
    }

    /// Shows: D4, D11
    #[test]
    fn a_selection_from_many_polls_each_future_once_and_the_first_once_more() {
        let polls = Cell::new(0);
        let (mut senders, futures) = many(MANY, &polls);
        let mut selected = pin!(select_all(futures));
        assert!(poll(selected.as_mut()).is_pending());
        for place in [900, 700, 800] {
            senders[place].take().unwrap().send(Ok(place)).unwrap();
        }
        assert_eq!(poll(selected), Poll::Ready((700, Ok(700))));
        assert_eq!(polls.get(), MANY + 1);
    }

    /// Shows: D4
    #[test]
    fn a_join_that_may_fail_ends_with_the_failure_of_the_lowest_place_that_is_there() {
        let polls = Cell::new(0);
        let (mut senders, futures) = many(3, &polls);
        let mut joined = pin!(try_join_all(futures));
        assert!(poll(joined.as_mut()).is_pending());
        for place in [2, 1] {
            senders[place].take().unwrap().send(Err(place)).unwrap();
        }
        assert_eq!(poll(joined), Poll::Ready(Err(1)));
    }

    /// Shows: D4
    #[tokio::test]
    async fn a_join_of_nothing_is_over_at_once() {
        assert!(join_all(Vec::<std::future::Ready<u32>>::new()).await.is_empty());
    }

    /// Shows: D4
    #[tokio::test]
    async fn futures_of_a_join_that_wake_each_other_are_polled_again() {
        let turn = tokio::sync::Mutex::new(Vec::new());
        let one = |number: u32| {
            let turn = &turn;
            async move {
                for _ in 0..3 {
                    turn.lock().await.push(number);
                    tokio::task::yield_now().await;
                }
            }
        };
        join_all([one(1), one(2)]).await;
        assert_eq!(*turn.lock().await, [1, 2, 1, 2, 1, 2]);
    }
}
