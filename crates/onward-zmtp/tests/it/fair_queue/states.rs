//! Tests of the states `Empty`, `One` and `Many`, and of the transitions between them.

use std::task::Poll;

use onward_zmtp::fair_queue::State;

use super::channel::{Step, channel, source_of};
use super::reader::{Queue, Reader};

/// Shows: M1
#[test]
fn a_lone_source_is_polled_with_the_readers_own_waker() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let (feeder, source) = channel();
    queue.insert(1, source).unwrap();
    assert!(reader.poll(&mut queue).is_pending());
    assert_eq!(feeder.waker().unwrap().data(), reader.waker().data());
}

/// Shows: M1
#[test]
fn a_second_source_makes_the_queue_many_and_wakes_a_parked_reader() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let handle = queue.handle();
    handle.insert(1, source_of([])).unwrap();
    assert!(reader.poll(&mut queue).is_pending());
    reader.was_woken();

    handle.insert(2, source_of([20])).unwrap();
    assert!(reader.was_woken());
    assert_eq!(reader.poll(&mut queue), Poll::Ready(Some((2, 20))));
    assert_eq!(queue.state(), State::Many);
}

#[test]
fn the_first_source_is_still_received_after_the_second_arrived() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let (first, source) = channel();
    queue.insert(1, source).unwrap();
    assert!(reader.poll(&mut queue).is_pending());
    queue.insert(2, source_of([])).unwrap();
    assert_eq!(reader.read_all(&mut queue), []);

    first.feed(Step::Give(10));
    assert!(reader.was_woken());
    assert_eq!(reader.poll(&mut queue), Poll::Ready(Some((1, 10))));
}

/// Shows: M1
#[test]
fn a_source_that_stays_alone_is_polled_directly_again() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let (feeder, source) = channel();
    queue.insert(1, source).unwrap();
    let second = queue.insert(2, source_of([])).unwrap();
    reader.read_all(&mut queue);
    queue.remove(second);

    reader.read_all(&mut queue);
    assert_eq!(queue.state(), State::Many, "the second may be about to come back");
    for message in 0..20 {
        feeder.feed(Step::Give(message));
        assert_eq!(reader.read_all(&mut queue), [(1, message)]);
    }
    assert_eq!(queue.state(), State::One);
    assert_eq!(feeder.waker().unwrap().data(), reader.waker().data());
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_lone_source_that_never_pauses_is_polled_directly_again() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    queue.insert(1, source_of(0..10_000)).unwrap();
    let second = queue.insert(2, source_of([])).unwrap();
    reader.poll(&mut queue).is_ready();
    queue.remove(second);
    reader.read_all(&mut queue);
    assert_eq!(queue.state(), State::One);
}

#[test]
fn replacing_the_lone_source_between_two_reads_never_makes_the_queue_many() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let mut old = queue.insert(0, source_of([])).unwrap();
    reader.read_all(&mut queue);
    for key in 1..100 {
        queue.remove(old);
        old = queue.insert(key, source_of([key])).unwrap();
        assert_eq!(reader.poll(&mut queue), Poll::Ready(Some((key, key))));
        assert_eq!(queue.state(), State::One);
    }
}

#[test]
fn the_queue_is_empty_when_the_last_of_many_has_gone() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let _handle = queue.handle();
    let ids: Vec<_> = (0..10).map(|key| queue.insert(key, source_of([])).unwrap()).collect();
    reader.read_all(&mut queue);
    ids.into_iter().for_each(|id| assert!(queue.remove(id)));
    reader.read_all(&mut queue);
    assert_eq!((queue.state(), queue.len()), (State::Empty, 0));
}

#[test]
fn a_late_wake_by_a_removed_source_has_no_effect() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let _handle = queue.handle();
    let (old, source) = channel();
    queue.insert(1, source_of([])).unwrap();
    let removed = queue.insert(2, source).unwrap();
    reader.read_all(&mut queue);
    queue.remove(removed);
    queue.insert(3, source_of([30])).unwrap();
    old.nudge();
    assert_eq!(reader.read_all(&mut queue), [(3, 30)]);
}
