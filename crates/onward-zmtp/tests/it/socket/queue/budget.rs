//! The fair queue over sources that share the runtime's cooperative budget.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use onward_zmtp::FairQueue;
use tokio::sync::mpsc::{Receiver, channel};

use crate::socket::support::events::within;

/// A channel of tokio. When the task has used up its budget, the channel wakes the task and returns
/// `Pending`, even if it has messages.
struct Source(Receiver<u32>);

impl Stream for Source {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u32>> {
        self.0.poll_recv(context)
    }
}

const SOURCES: u32 = 4;
const MESSAGES: u32 = 1000;

/// Returns a queue of full channels that have no senders left.
fn full() -> FairQueue<u32, Source> {
    let mut queue = FairQueue::new();
    for source in 0..SOURCES {
        let (sender, receiver) = channel(MESSAGES as usize);
        (0..MESSAGES).for_each(|number| sender.try_send(number).unwrap());
        queue.insert(source, Source(receiver)).unwrap();
    }
    queue
}

/// zmq.rs #248 had this fault: sources that woke themselves because the budget was used up were
/// polled again and again in the same poll.
///
/// Shows: M1
#[tokio::test]
async fn when_the_budget_is_used_up_others_have_their_turn_and_then_every_message_is_read() {
    let mut queue = full();
    let others = tokio::spawn(async {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    });
    let reading = async {
        let mut next = [0; SOURCES as usize];
        while let Some((source, number)) = queue.recv().await {
            assert_eq!(number, next[source as usize]);
            next[source as usize] += 1;
        }
        next
    };
    assert_eq!(within(reading).await, [MESSAGES; SOURCES as usize]);
    assert!(others.is_finished());
}
