//! Models of handles that are used while the queue is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::future::block_on;
use loom::sync::atomic::AtomicBool;
use loom::thread;
use onward_zmtp::FairQueue;

use super::channel::{Source, channel, source_of};

type Queue = FairQueue<u32, Source>;

#[test]
fn a_source_that_is_inserted_wakes_the_reader_of_an_empty_queue() {
    loom::model(|| {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let inserting = thread::spawn(move || _ = handle.insert(1, source_of(7)).unwrap());
        assert_eq!(block_on(queue.recv()), Some((1, 7)));
        inserting.join().unwrap();
    });
}

#[test]
fn both_are_received_when_a_second_source_arrives_while_the_first_is_read() {
    loom::model(|| {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let (first, source) = channel();
        queue.insert(1, source).unwrap();
        let feeding = thread::spawn(move || first.give(7));
        let inserting = thread::spawn(move || _ = handle.insert(2, source_of(8)).unwrap());
        let mut received = [block_on(queue.recv()).unwrap(), block_on(queue.recv()).unwrap()];
        received.sort_unstable();
        assert_eq!(received, [(1, 7), (2, 8)]);
        feeding.join().unwrap();
        inserting.join().unwrap();
    });
}

#[test]
fn no_read_that_begins_after_a_removal_gives_a_message_of_the_removed() {
    loom::model(|| {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let (feeder, source) = channel();
        let id = queue.insert(1, source).unwrap();
        feeder.give(1);
        feeder.give(2);
        let removed = Arc::new(AtomicBool::new(false));
        let removing = thread::spawn({
            let removed = removed.clone();
            move || {
                assert!(handle.remove(id));
                removed.store(true, Ordering::Release);
            }
        });
        loop {
            let began_after = removed.load(Ordering::Acquire);
            match block_on(queue.recv()) {
                Some(_) => assert!(!began_after, "a removed source came back"),
                None => break,
            }
        }
        removing.join().unwrap();
    });
}

#[test]
fn the_last_handle_ends_an_empty_queue() {
    loom::model(|| {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let dropping = thread::spawn(move || drop(handle));
        assert_eq!(block_on(queue.recv()), None);
        dropping.join().unwrap();
    });
}

#[test]
fn what_the_last_handle_inserted_is_read_before_the_end() {
    loom::model(|| {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let inserting = thread::spawn(move || {
            handle.insert(1, source_of(7)).unwrap();
        });
        assert_eq!(block_on(queue.recv()), Some((1, 7)));
        inserting.join().unwrap();
    });
}

#[test]
fn a_source_that_ends_while_it_is_removed_is_reported_or_removed_but_not_both() {
    loom::model(|| {
        let mut queue = Queue::new();
        let handle = queue.handle();
        let (feeder, source) = channel();
        feeder.close();
        let id = queue.insert(1, source).unwrap();
        let reported = Arc::new(AtomicUsize::new(0));
        queue.on_end({
            let reported = reported.clone();
            move |_| _ = reported.fetch_add(1, Ordering::SeqCst)
        });
        let removing = thread::spawn(move || handle.remove(id));
        assert_eq!(block_on(queue.recv()), None);
        let removed = removing.join().unwrap();
        assert_eq!(reported.load(Ordering::SeqCst) + usize::from(removed), 1);
    });
}

#[test]
fn a_source_that_is_inserted_while_the_queue_is_dropped_is_dropped_or_given_back() {
    loom::model(|| {
        let queue = Queue::new();
        let handle = queue.handle();
        let inserting = thread::spawn(move || {
            let given_back = handle.insert(1, source_of(7)).is_err();
            assert!(!given_back || handle.is_closed());
            handle
        });
        drop(queue);
        let handle = inserting.join().unwrap();
        assert!(handle.is_closed() && handle.is_empty());
    });
}
