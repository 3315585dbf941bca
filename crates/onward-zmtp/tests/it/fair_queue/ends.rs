//! Sources that end, and the end of the queue.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use super::channel::{Step, channel, source_of};
use super::reader::{Queue, Reader};

/// Returns the keys of the sources that `on_end` was called with.
fn reported(queue: &mut Queue) -> Arc<Mutex<Vec<u32>>> {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let keys = reported.clone();
    queue.on_end(move |ended| keys.lock().unwrap().push(ended.key));
    reported
}

/// Shows: M1
#[test]
fn a_source_that_ends_is_reported_and_leaves_the_others_alone() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let reported = reported(&mut queue);
    let (feeder, source) = channel();
    queue.insert(1, source).unwrap();
    queue.insert(2, source_of(0..3)).unwrap();
    feeder.feed(Step::End);
    assert_eq!(reader.read_all(&mut queue), [(2, 0), (2, 1), (2, 2)]);
    assert_eq!((&reported.lock().unwrap()[..], queue.len()), (&[1][..], 1));
}

#[test]
fn a_lone_source_that_ends_is_reported() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let reported = reported(&mut queue);
    let (feeder, source) = channel();
    queue.insert(1, source).unwrap();
    feeder.feed(Step::End);
    assert_eq!(reader.poll(&mut queue), Poll::Ready(None));
    assert_eq!(*reported.lock().unwrap(), [1]);
}

#[test]
fn a_removed_source_is_not_reported() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let reported = reported(&mut queue);
    let (feeder, source) = channel();
    let id = queue.insert(1, source).unwrap();
    assert!(reader.poll(&mut queue).is_pending());
    feeder.feed(Step::End);
    assert!(queue.remove(id));
    assert_eq!(reader.poll(&mut queue), Poll::Ready(None));
    assert_eq!(*reported.lock().unwrap(), []);
}

#[test]
fn the_callback_may_insert_another_source() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let handle = queue.handle();
    queue.on_end(move |ended| {
        if ended.key < 3 {
            handle.insert(ended.key + 1, source_of([0])).unwrap();
        }
    });
    let (feeder, source) = channel();
    feeder.feed(Step::End);
    queue.insert(1, source).unwrap();
    assert_eq!(reader.read_all(&mut queue), [(2, 0)]);
}

#[test]
fn sources_that_end_and_come_back_for_ever_cannot_hold_up_a_batch() {
    fn ending() -> super::channel::Source {
        let (feeder, source) = channel();
        feeder.feed(Step::End);
        source
    }
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let handle = queue.handle();
    queue.on_end(move |ended| _ = handle.insert(ended.key, ending()).unwrap());
    queue.insert(1, ending()).unwrap();
    assert!(reader.poll_many(&mut queue, &mut Vec::new(), 10).is_pending());
    assert!(reader.was_woken());
    assert_eq!(queue.try_recv(), None);
    assert!(reader.poll(&mut queue).is_pending());
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_thousand_sources_that_end_at_once_are_all_reported() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let reported = reported(&mut queue);
    for key in 0..1000 {
        let (feeder, source) = channel();
        feeder.feed(Step::End);
        queue.insert(key, source).unwrap();
    }
    assert_eq!(reader.read_all(&mut queue), []);
    assert_eq!(reported.lock().unwrap().len(), 1000);
}

#[test]
fn an_empty_queue_waits_for_its_handles_and_ends_with_the_last() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let (first, second) = (queue.handle(), queue.handle());
    drop(first);
    assert!(reader.poll(&mut queue).is_pending());
    reader.was_woken();
    drop(second);
    assert!(reader.was_woken());
    // The first poll takes the signal, and the next finds that nothing is left to wait for.
    assert_eq!(reader.read_all(&mut queue), []);
    assert_eq!(reader.poll(&mut queue), Poll::Ready(None));
}

#[test]
fn a_queue_that_ended_can_be_used_again() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    assert_eq!(reader.poll(&mut queue), Poll::Ready(None));
    queue.insert(1, source_of([7])).unwrap();
    assert_eq!(reader.poll(&mut queue), Poll::Ready(Some((1, 7))));
}
