//! Models of the queue for loom, which runs every interleaving of its users. `CONTRIBUTING.md` says
//! how to run them.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use loom::future::block_on;
use loom::thread;

use super::bounded_queue::Queue;
use super::items::{Amount, Taken};
use super::quota::Quota;
use super::unread_backlog::UnreadBacklog;
use crate::protocol::Message;
use crate::socket::options::high_water_mark::HighWaterMark;

const ONE: Amount = Amount { messages: 1, bytes: 1 };

fn queue(messages: usize) -> Arc<Queue<Message>> {
    shared_queue(messages, Arc::new(Quota::unlimited()))
}

fn shared_queue(messages: usize, quota: Arc<Quota>) -> Arc<Queue<Message>> {
    Arc::new(Queue::new(HighWaterMark::messages(messages), quota))
}

fn push(queue: &Queue<Message>) -> bool {
    queue.push(1, |items| items.list.push_back(Message::from("a"))).is_ok()
}

fn wait_for_room(queue: &Queue<Message>) -> Amount {
    block_on(poll_fn(|context| queue.poll_room(context)))
}

/// Waits for items and takes all. Returns zero when the queue is at its end.
fn take(queue: &Queue<Message>, taken: &mut Taken<Message>) -> usize {
    taken.items.list.clear();
    let is_more = block_on(poll_fn(|context| queue.poll_take(context, taken)));
    if is_more { taken.items.list.len() } else { 0 }
}

#[test]
fn a_reader_that_waits_receives_all_that_is_queued() {
    loom::model(|| {
        let queue = queue(10);
        let writing = thread::spawn({
            let queue = queue.clone();
            move || assert!(push(&queue) && push(&queue))
        });
        let (mut taken, mut count) = (Taken::nothing(), 0);
        while count < 2 {
            count += take(&queue, &mut taken);
        }
        writing.join().unwrap();
    });
}

/// The second poll takes no lock.
#[test]
fn a_reader_that_polls_again_receives_all_that_is_queued() {
    loom::model(|| {
        let queue = queue(10);
        let writing = thread::spawn({
            let queue = queue.clone();
            move || assert!(push(&queue))
        });
        let mut taken = Taken::nothing();
        assert!(block_on(poll_fn(|context| {
            let first = queue.poll_take(context, &mut taken);
            if first.is_ready() { first } else { queue.poll_take(context, &mut taken) }
        })));
        assert_eq!(taken.items.list.len(), 1);
        writing.join().unwrap();
    });
}

#[test]
fn a_waiting_writer_is_woken_when_there_is_room() {
    loom::model(|| {
        let queue = queue(1);
        assert!(push(&queue));
        let writing = thread::spawn({
            let queue = queue.clone();
            move || {
                assert_eq!(wait_for_room(&queue).messages, 1);
                assert!(push(&queue));
            }
        });
        let mut taken = Taken::nothing();
        assert_eq!(take(&queue, &mut taken), 1);
        queue.done(&mut { ONE });
        assert_eq!(take(&queue, &mut taken), 1);
        writing.join().unwrap();
    });
}

#[test]
fn a_waiting_writer_is_woken_when_its_quota_grows() {
    loom::model(|| {
        let quota = Arc::new(Quota::unlimited());
        quota.divide(1000, 1000);
        let queue = shared_queue(1000, quota.clone());
        while push(&queue) {}
        let writing = thread::spawn({
            let queue = queue.clone();
            move || assert!(wait_for_room(&queue).messages > 0)
        });
        assert!(quota.divide(1000, 1));
        queue.wake_writer();
        writing.join().unwrap();
    });
}

#[test]
fn both_waiters_are_notified_of_the_end() {
    loom::model(|| {
        let queue = queue(1);
        let reading = thread::spawn({
            let queue = queue.clone();
            move || assert_eq!(take(&queue, &mut Taken::nothing()), 0)
        });
        queue.close();
        assert_eq!(wait_for_room(&queue).messages, usize::MAX);
        reading.join().unwrap();
    });
}

#[test]
fn what_is_queued_while_a_connection_ends_is_given_back_or_refused() {
    loom::model(|| {
        let queue = queue(10);
        let writing = thread::spawn({
            let queue = queue.clone();
            move || (0..2).filter(|_| push(&queue)).count()
        });
        let given_back = queue.close_and_take().len();
        assert_eq!(given_back, writing.join().unwrap());
    });
}

#[test]
fn what_is_read_while_a_connection_ends_is_left_over_by_none() {
    loom::model(|| {
        let unread_backlog = Arc::new(UnreadBacklog::new(HighWaterMark::messages(10)));
        let queue = queue(10);
        assert!(push(&queue) && push(&queue));
        let ending = thread::spawn({
            let (queue, unread_backlog) = (queue.clone(), unread_backlog.clone());
            move || queue.close_into(&unread_backlog)
        });
        let mut taken = Taken::nothing();
        assert_eq!(take(&queue, &mut taken), 2);
        queue.done(&mut { ONE });
        ending.join().unwrap();
        assert_eq!(unread_backlog.size().messages, 1);
        queue.done(&mut { ONE });
        assert_eq!(unread_backlog.size().messages, 0);
    });
}

#[test]
fn a_connection_that_waits_for_an_unread_backlog_is_notified_when_it_was_read() {
    loom::model(|| {
        let unread_backlog = Arc::new(UnreadBacklog::new(HighWaterMark::messages(1)));
        unread_backlog.add(ONE);
        let waiting = thread::spawn({
            let unread_backlog = unread_backlog.clone();
            move || block_on(poll_fn(|context| unread_backlog.poll_room(7, context)))
        });
        unread_backlog.subtract(ONE);
        waiting.join().unwrap();
        assert!(matches!(
            block_on(poll_fn(|context| Poll::Ready(unread_backlog.poll_room(8, context)))),
            Poll::Ready(())
        ));
    });
}
