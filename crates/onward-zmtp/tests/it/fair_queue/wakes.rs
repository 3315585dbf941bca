//! Tests of wake-ups, and of what a read without waiting leaves behind.

use super::channel::{Step, channel, source_of};
use super::reader::{Queue, Reader};

#[test]
fn a_message_wakes_the_reader_that_polled_last() {
    for others in [0, 1] {
        let (mut queue, first, second) = (Queue::new(), Reader::new(), Reader::new());
        let (feeder, source) = channel();
        queue.insert(1, source).unwrap();
        for _ in 0..others {
            queue.insert(9, source_of([])).unwrap();
        }
        first.read_all(&mut queue);
        second.read_all(&mut queue);
        feeder.feed(Step::Give(1));
        assert!(second.was_woken());
    }
}

#[test]
fn looking_without_waiting_does_not_take_the_wake_from_a_parked_reader() {
    for others in [0, 1] {
        let (mut queue, reader) = (Queue::new(), Reader::new());
        let (feeder, source) = channel();
        queue.insert(1, source).unwrap();
        for _ in 0..others {
            queue.insert(9, source_of([])).unwrap();
        }
        reader.read_all(&mut queue);
        assert_eq!(queue.try_recv(), None);
        reader.was_woken();
        feeder.feed(Step::Give(1));
        assert!(reader.was_woken());
        assert_eq!(reader.read_all(&mut queue), [(1, 1)]);
    }
}

#[test]
fn looking_without_waiting_takes_turns_as_reading_does() {
    let mut queue = Queue::new();
    queue.insert(1, source_of(0..2)).unwrap();
    queue.insert(2, source_of(0..2)).unwrap();
    assert_eq!(queue.try_recv(), Some((1, 0)));
    let mut messages = Vec::new();
    assert_eq!(queue.try_recv_many(&mut messages, 10), 3);
    assert_eq!(messages, [(2, 0), (1, 1), (2, 1)]);
    assert_eq!((queue.try_recv(), queue.try_recv_many(&mut messages, 10)), (None, 0));
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn every_source_of_thousands_is_received() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let feeders: Vec<_> = (0..5000)
        .map(|key| {
            let (feeder, source) = channel();
            queue.insert(key, source).unwrap();
            feeder
        })
        .collect();
    assert_eq!(reader.read_all(&mut queue), []);
    for (key, feeder) in (0..).zip(&feeders) {
        feeder.feed(Step::Give(key));
        assert_eq!(reader.read_all(&mut queue), [(key, key)]);
    }
}
