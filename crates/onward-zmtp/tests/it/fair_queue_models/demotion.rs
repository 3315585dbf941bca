//! Models of the demotion from many sources to one while the remaining source returns messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::future::block_on;
use loom::thread;
use onward_zmtp::FairQueue;
use onward_zmtp::fair_queue::State;

use super::channel::{Source, channel, source_of};

type Queue = FairQueue<u32, Source>;

/// The number of interleavings in which the queue was demoted before the last message was read. If
/// it is zero, the model shows nothing.
#[derive(Clone, Default)]
struct Demotions(Arc<AtomicUsize>);

impl Demotions {
    fn note(&self, queue: &Queue) {
        self.0.fetch_add(usize::from(queue.state() == State::One), Ordering::Relaxed);
    }

    /// Checks that the finished model reached a demotion at least once.
    fn expect_some(&self) {
        assert!(self.0.load(Ordering::Relaxed) > 0, "no interleaving came to a demotion");
    }
}

#[test]
fn a_source_that_sends_while_it_becomes_the_lone_one_is_received() {
    let demotions = Demotions::default();
    let seen = demotions.clone();
    loom::model(move || {
        let mut queue = Queue::new();
        let ((feeder, source), (other, ended)) = (channel(), channel());
        queue.insert(0, source).unwrap();
        queue.insert(1, ended).unwrap();
        other.close();
        let feeding = thread::spawn(move || (1..=3).for_each(|message| feeder.give(message)));
        for message in 1..=3 {
            assert_eq!(block_on(queue.recv()), Some((0, message)));
        }
        seen.note(&queue);
        feeding.join().unwrap();
    });
    demotions.expect_some();
}

/// The removal is the last to wake the reader, so the remaining source sends to a reader that has
/// parked again.
#[test]
fn a_reader_that_is_parked_when_one_source_is_removed_receives_from_the_other() {
    let demotions = Demotions::default();
    let seen = demotions.clone();
    loom::model(move || {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let ((feeder, source), (_silent, other)) = (channel(), channel());
        queue.insert(0, source).unwrap();
        let other = queue.insert(1, other).unwrap();
        let removing = thread::spawn(move || assert!(handle.remove(other)));
        let feeding = thread::spawn(move || (1..=2).for_each(|message| feeder.give(message)));
        for message in 1..=2 {
            assert_eq!(block_on(queue.recv()), Some((0, message)));
        }
        seen.note(&queue);
        removing.join().unwrap();
        feeding.join().unwrap();
    });
    demotions.expect_some();
}

#[test]
fn both_are_received_when_a_source_returns_while_the_other_becomes_the_lone_one() {
    let demotions = Demotions::default();
    let seen = demotions.clone();
    loom::model(move || {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let ((feeder, source), (other, ended)) = (channel(), channel());
        queue.insert(0, source).unwrap();
        queue.insert(1, ended).unwrap();
        other.close();
        feeder.give(1);
        assert_eq!(block_on(queue.recv()), Some((0, 1)));
        let feeding = thread::spawn(move || feeder.give(2));
        // These reads are the pauses after which the source is demoted. Messages that they find are
        // kept.
        let mut received: Vec<_> = std::iter::from_fn(|| queue.try_recv()).collect();
        received.extend(queue.try_recv());
        seen.note(&queue);
        let inserting = thread::spawn(move || _ = handle.insert(2, source_of(3)).unwrap());
        while received.len() < 2 {
            received.push(block_on(queue.recv()).unwrap());
        }
        received.sort_unstable();
        assert_eq!(received, [(0, 2), (2, 3)]);
        feeding.join().unwrap();
        inserting.join().unwrap();
    });
    demotions.expect_some();
}
