//! Tests of the turns that each source gets.

use std::task::Poll;

use onward_zmtp::fair_queue::{EMPTY_POLLS_BEFORE_YIELD, READS_BEFORE_YIELD};

use super::channel::{Step, channel, source_of};
use super::reader::{Queue, Reader};

/// Shows: M1
#[test]
fn sources_that_always_have_something_take_turns() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    for key in 0..5 {
        queue.insert(key, source_of(0..100)).unwrap();
    }
    let keys: Vec<u32> = reader.read_all(&mut queue).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [0, 1, 2, 3, 4].repeat(100));
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_source_that_floods_gets_one_turn_in_each_round() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    queue.insert(0, source_of(0..1000)).unwrap();
    queue.insert(1, source_of(0..10)).unwrap();
    queue.insert(2, source_of(0..10)).unwrap();
    let first: Vec<u32> = reader.read_all(&mut queue).into_iter().take(30).map(|(key, _)| key).collect();
    assert_eq!(first, [0, 1, 2].repeat(10));
}

#[test]
fn batches_change_nothing_about_whose_turn_it_is() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    for key in 0..3 {
        queue.insert(key, source_of(0..20)).unwrap();
    }
    let mut messages = Vec::new();
    for _ in 0..10 {
        assert_eq!(reader.poll_many(&mut queue, &mut messages, 6), Poll::Ready(6));
    }
    let expected: Vec<_> = (0..20).flat_map(|message| (0..3).map(move |key| (key, message))).collect();
    assert_eq!(messages, expected);
}

#[test]
fn a_batch_takes_what_is_there_and_does_not_wait_for_more() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    queue.insert(0, source_of(0..3)).unwrap();
    queue.insert(1, source_of(0..2)).unwrap();
    let mut messages = Vec::new();
    assert_eq!(reader.poll_many(&mut queue, &mut messages, 100), Poll::Ready(5));
}

/// Shows: M1
#[test]
fn a_source_that_wakes_itself_is_polled_once_per_poll_of_the_queue() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let (feeder, source) = channel();
    (0..1000).for_each(|_| feeder.feed(Step::Stall));
    queue.insert(0, source).unwrap();
    queue.insert(1, source_of([])).unwrap();
    for polls in 1..10 {
        assert!(reader.poll(&mut queue).is_pending());
        assert!(reader.was_woken());
        assert_eq!(feeder.polls(), polls);
    }
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_source_that_wakes_itself_cannot_hold_up_a_batch() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let (feeder, source) = channel();
    (0..100_000).for_each(|_| feeder.feed(Step::Stall));
    queue.insert(0, source).unwrap();
    queue.insert(1, source_of(0..1000)).unwrap();
    let mut messages = Vec::new();
    assert!(reader.poll_many(&mut queue, &mut messages, 1000).is_ready());
    assert!(feeder.polls() <= EMPTY_POLLS_BEFORE_YIELD as usize);
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn one_poll_asks_a_bounded_number_of_empty_sources() {
    let (mut queue, reader) = (Queue::new(), Reader::new());
    let feeders: Vec<_> = (0..1000)
        .map(|key| {
            let (feeder, source) = channel();
            queue.insert(key, source).unwrap();
            feeder
        })
        .collect();
    let polls = || feeders.iter().map(super::channel::Feeder::polls).sum::<usize>();
    assert!(reader.poll(&mut queue).is_pending());
    assert_eq!(polls(), EMPTY_POLLS_BEFORE_YIELD as usize);
    assert_eq!(reader.read_all(&mut queue), []);
    assert_eq!(polls(), 1000);
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_reader_that_always_finds_something_yields_now_and_then() {
    for sources in [1, 3] {
        let (mut queue, reader) = (Queue::new(), Reader::new());
        for key in 0..sources {
            queue.insert(key, source_of(0..1000)).unwrap();
        }
        for _ in 0..READS_BEFORE_YIELD {
            assert!(reader.poll(&mut queue).is_ready());
        }
        reader.was_woken();
        assert!(reader.poll(&mut queue).is_pending());
        assert!(reader.was_woken());
        assert!(reader.poll(&mut queue).is_ready());
    }
}
