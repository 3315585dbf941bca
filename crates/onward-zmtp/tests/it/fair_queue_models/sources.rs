//! Models of sources that are woken while the queue is read.

use loom::future::block_on;
use loom::thread;
use onward_zmtp::FairQueue;

use super::channel::{Feeder, Source, channel};

fn queue_of(count: u32) -> (FairQueue<u32, Source>, Vec<Feeder>) {
    let mut queue = FairQueue::new();
    let feeders = (0..count).map(|key| {
        let (feeder, source) = channel();
        queue.insert(key, source).unwrap();
        feeder
    });
    let feeders = feeders.collect();
    (queue, feeders)
}

#[test]
fn a_lone_source_is_received() {
    loom::model(|| {
        let (mut queue, feeders) = queue_of(1);
        let feeding = thread::spawn(move || feeders[0].give(7));
        assert_eq!(block_on(queue.recv()), Some((0, 7)));
        feeding.join().unwrap();
    });
}

#[test]
fn one_of_many_is_received() {
    loom::model(|| {
        let (mut queue, feeders) = queue_of(2);
        let feeding = thread::spawn(move || feeders[1].give(7));
        assert_eq!(block_on(queue.recv()), Some((1, 7)));
        feeding.join().unwrap();
    });
}

#[test]
fn two_that_share_a_word_of_bits_are_both_received() {
    loom::model(|| {
        let (mut queue, feeders) = queue_of(2);
        let [first, second] = <[Feeder; 2]>::try_from(feeders).ok().unwrap();
        let feeding = [thread::spawn(move || first.give(1)), thread::spawn(move || second.give(2))];
        let mut received = [block_on(queue.recv()).unwrap(), block_on(queue.recv()).unwrap()];
        received.sort_unstable();
        assert_eq!(received, [(0, 1), (1, 2)]);
        feeding.into_iter().for_each(|feeding| feeding.join().unwrap());
    });
}

#[test]
fn a_source_is_received_from_again_after_it_was_empty() {
    loom::model(|| {
        let (mut queue, feeders) = queue_of(2);
        let feeding = thread::spawn(move || {
            feeders[0].give(1);
            feeders[0].give(2);
        });
        assert_eq!(block_on(queue.recv()), Some((0, 1)));
        assert_eq!(block_on(queue.recv()), Some((0, 2)));
        feeding.join().unwrap();
    });
}

#[test]
fn looking_without_waiting_leaves_the_wake_to_the_parked_reader() {
    loom::model(|| {
        let (mut queue, feeders) = queue_of(1);
        let feeding = thread::spawn(move || feeders[0].give(7));
        let received = block_on(std::future::poll_fn(|context| {
            // A read that parks, then one without waiting in the same poll of the task.
            let read = queue.poll_recv(context);
            match queue.try_recv() {
                Some(message) if read.is_pending() => std::task::Poll::Ready(Some(message)),
                _ => read,
            }
        }));
        assert_eq!(received, Some((0, 7)));
        feeding.join().unwrap();
    });
}
