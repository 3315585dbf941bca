//! Tests of handles that change the queue while it is being read.

use std::task::Poll;

use onward_zmtp::FairQueue;

use super::channel::{Step, channel, source_of};
use super::reader::{Queue, Reader};

/// Shows: M1
#[test]
fn a_removed_source_is_never_read_again() {
    for others in [0, 1] {
        let (mut queue, reader) = (Queue::new(), Reader::new());
        let handle = queue.handle();
        for _ in 0..others {
            handle.insert(9, source_of([])).unwrap();
        }
        let (feeder, source) = channel();
        let id = handle.insert(1, source).unwrap();
        reader.read_all(&mut queue);
        feeder.feed(Step::Give(1));
        assert!(handle.remove(id));
        feeder.feed(Step::Give(2));
        assert_eq!(reader.read_all(&mut queue), []);
        assert!(feeder.is_dropped());
    }
}

#[test]
fn a_source_is_removed_once() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let id = queue.insert(1, source_of([])).unwrap();
    reader.read_all(&mut queue);
    assert!(queue.remove(id));
    assert!(!queue.remove(id));
}

#[test]
fn a_source_that_the_reader_has_not_seen_is_dropped_at_once() {
    let mut queue = Queue::new();
    let (feeder, source) = channel();
    let id = queue.insert(1, source).unwrap();
    assert!(queue.remove(id));
    assert!(feeder.is_dropped());
}

#[test]
fn removing_by_an_old_id_spares_the_source_that_came_after_it() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let old = queue.insert(1, source_of([])).unwrap();
    queue.insert(2, source_of([])).unwrap();
    reader.read_all(&mut queue);
    queue.remove(old);
    queue.insert(1, source_of([10])).unwrap();
    assert!(!queue.remove(old));
    assert_eq!(reader.read_all(&mut queue), [(1, 10)]);
}

#[test]
fn removal_wakes_a_parked_reader_to_drop_the_source() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let handle = queue.handle();
    let id = handle.insert(1, source_of([])).unwrap();
    assert!(reader.poll(&mut queue).is_pending());
    reader.was_woken();
    handle.remove(id);
    assert!(reader.was_woken());
}

#[test]
fn a_full_queue_gives_the_source_back_and_names_its_limit() {
    let mut queue = FairQueue::with_limit(2);
    queue.insert(1, source_of([])).unwrap();
    let second = queue.insert(2, source_of([])).unwrap();
    let refused = queue.insert(3, source_of([])).unwrap_err();
    assert!(!refused.is_closed() && refused.key == 3);
    assert!(refused.to_string().contains("2 sources"), "{refused}");
    queue.remove(second);
    queue.insert(3, refused.source).unwrap();
}

#[test]
fn a_source_counts_until_the_reader_has_dropped_it() {
    let (mut queue, reader) = (FairQueue::with_limit(1), Reader::new());
    let id = queue.insert(1, source_of([])).unwrap();
    assert!(reader.poll(&mut queue).is_pending());
    queue.remove(id);
    let refused = queue.insert(2, source_of([])).unwrap_err();
    assert_eq!(reader.read_all(&mut queue), []);
    queue.insert(2, refused.source).unwrap();
}

#[test]
fn nothing_goes_into_a_queue_that_is_gone() {
    let queue = Queue::new();
    let handle = queue.handle();
    let (feeder, source) = channel();
    let id = handle.insert(1, source).unwrap();
    drop(queue);
    assert!(feeder.is_dropped());
    assert!(handle.is_closed() && handle.is_empty() && !handle.remove(id));
    assert!(handle.insert(2, source_of([])).unwrap_err().is_closed());
}

#[test]
fn keys_need_not_differ() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    queue.insert(1, source_of([10])).unwrap();
    queue.insert(1, source_of([20])).unwrap();
    assert_eq!(reader.poll(&mut queue), Poll::Ready(Some((1, 10))));
    assert_eq!(reader.poll(&mut queue), Poll::Ready(Some((1, 20))));
}

#[test]
fn queue_and_handle_go_to_other_threads() {
    fn is_send<T: Send>(_: &T) {}
    fn is_sync<T: Sync>(_: &T) {}
    let queue: FairQueue<std::cell::Cell<u32>, super::channel::Source> = FairQueue::new();
    is_send(&queue);
    is_send(&queue.handle());
    is_sync(&queue.handle());
}
