//! Properties of any sequence of insertions, removals, messages, stalls, ends and reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use onward_zmtp::fair_queue::SourceId;
use proptest::prelude::*;

use super::channel::{Feeder, Step, channel};
use super::reader::{Queue, Reader};

#[derive(Debug, Clone, Copy)]
enum Action {
    Insert,
    Remove(usize),
    Give(usize, u32),
    Stall(usize),
    End(usize),
    /// A poll as by a task that was woken for another reason.
    Poll,
    PollMany(usize),
    Try,
}

fn action() -> impl Strategy<Value = Action> {
    let source = 0..8_usize;
    prop_oneof![
        2 => Just(Action::Insert),
        1 => source.clone().prop_map(Action::Remove),
        6 => (source.clone(), 1..6_u32).prop_map(|(source, count)| Action::Give(source, count)),
        2 => source.clone().prop_map(Action::Stall),
        1 => source.prop_map(Action::End),
        8 => Just(Action::Poll),
        2 => (1..10_usize).prop_map(Action::PollMany),
        1 => Just(Action::Try),
    ]
}

/// A source as the test tracks it.
struct Known {
    id: SourceId,
    feeder: Feeder,
    given: u32,
    received: u32,
    closed: bool,
    removed: bool,
    /// The sources that were ready before the read that last returned a message of this one, and
    /// have not returned one since.
    owed: BTreeSet<u32>,
}

#[derive(Default)]
struct World {
    sources: BTreeMap<u32, Known>,
    ended: Arc<Mutex<Vec<u32>>>,
}

impl World {
    fn act(&mut self, queue: &mut Queue, reader: &Reader, action: Action) {
        match action {
            Action::Insert => self.insert(queue),
            Action::Remove(nth) => self.remove(queue, nth),
            Action::Give(nth, count) => self.give(nth, count),
            Action::Stall(nth) => self.feed(nth, Step::Stall),
            Action::End(nth) => self.end(nth),
            Action::Poll => _ = self.poll(queue, reader),
            Action::PollMany(limit) => {
                let mut messages = Vec::new();
                let polled = reader.poll_many(queue, &mut messages, limit);
                assert!(messages.len() <= limit && polled.map(|taken| taken == messages.len()) != Poll::Ready(false));
                // The test cannot see which sources became ready inside the batch.
                messages.into_iter().for_each(|message| self.receive(message, BTreeSet::new()));
            }
            Action::Try => {
                let ready = self.ready();
                if let Some(message) = queue.try_recv() {
                    self.receive(message, ready);
                }
            }
        }
    }

    fn poll(&mut self, queue: &mut Queue, reader: &Reader) -> Poll<()> {
        let ready = self.ready();
        reader.poll(queue).map(|message| {
            if let Some(message) = message {
                self.receive(message, ready);
            }
        })
    }

    /// Reads as a task does: polls until it is no longer woken.
    fn read(&mut self, queue: &mut Queue, reader: &Reader) {
        while self.poll(queue, reader).is_ready() || reader.was_woken() {}
    }

    fn ready(&self) -> BTreeSet<u32> {
        self.sources.iter().filter(|(_, known)| known.is_ready()).map(|(key, _)| *key).collect()
    }

    fn insert(&mut self, queue: &mut Queue) {
        let key = u32::try_from(self.sources.len()).unwrap();
        let (feeder, source) = channel();
        let id = queue.insert(key, source).unwrap();
        let owed = BTreeSet::new();
        let known = Known { id, feeder, given: 0, received: 0, closed: false, removed: false, owed };
        self.sources.insert(key, known);
    }

    /// Returns one of the sources that can still get a message, among the youngest eight.
    fn open(&mut self, nth: usize) -> Option<&mut Known> {
        let open = self.sources.values_mut().rev().filter(|known| !known.closed && !known.removed);
        open.take(8).nth(nth)
    }

    fn remove(&mut self, queue: &mut Queue, nth: usize) {
        if let Some(known) = self.open(nth) {
            known.removed = true;
            let id = known.id;
            assert!(queue.remove(id));
            assert!(!queue.remove(id));
        }
    }

    fn give(&mut self, nth: usize, count: u32) {
        if let Some(known) = self.open(nth) {
            for _ in 0..count {
                known.feeder.feed(Step::Give(known.given));
                known.given += 1;
            }
        }
    }

    fn feed(&mut self, nth: usize, step: Step) {
        if let Some(known) = self.open(nth) {
            known.feeder.feed(step);
        }
    }

    fn end(&mut self, nth: usize) {
        if let Some(known) = self.open(nth) {
            known.closed = true;
            known.feeder.feed(Step::End);
        }
    }

    /// Checks that the message is the next of its source, that the source was not removed, and that
    /// no ready source was passed over.
    fn receive(&mut self, (key, message): (u32, u32), mut ready: BTreeSet<u32>) {
        let removed: Vec<u32> = self.sources.iter().filter(|(_, it)| it.removed).map(|(key, _)| *key).collect();
        for known in self.sources.values_mut() {
            known.owed.retain(|owed| !removed.contains(owed));
        }
        let known = self.sources.get_mut(&key).unwrap();
        assert!(!known.removed, "a removed source came back");
        assert_eq!(known.received, message, "out of order, twice, or lost");
        assert!(known.owed.is_empty(), "{key} had a second turn before {:?}", known.owed);
        ready.remove(&key);
        known.received += 1;
        known.owed = ready;
        for known in self.sources.values_mut() {
            known.owed.remove(&key);
        }
    }

    /// Checks that all messages of sources that were not removed were received, and that those that
    /// ended were reported.
    fn check_complete(&self) {
        let ended = self.ended.lock().unwrap();
        for (key, known) in &self.sources {
            let reported = ended.iter().filter(|ended| *ended == key).count();
            if known.removed {
                assert_eq!(reported, 0, "a removed source was told of");
                assert!(known.feeder.is_dropped());
            } else {
                assert_eq!(known.received, known.given, "source {key} lost messages");
                assert_eq!(reported, usize::from(known.closed), "source {key}");
            }
        }
    }
}

impl Known {
    fn is_ready(&self) -> bool {
        !self.removed && matches!(self.feeder.next_step(), Some(Step::Give(_)))
    }
}

fn play(actions: &[Action]) {
    let (mut queue, reader, mut world) = (Queue::new(), Reader::new(), World::default());
    let _handle = queue.handle();
    let ended = world.ended.clone();
    queue.on_end(move |it| ended.lock().unwrap().push(it.key));
    for action in actions {
        world.act(&mut queue, &reader, *action);
    }
    // The reader is polled only when it was woken from now on, so a lost wake-up loses messages.
    world.read(&mut queue, &reader);
    for action in actions {
        if !matches!(action, Action::Poll | Action::PollMany(_) | Action::Try) {
            world.act(&mut queue, &reader, *action);
        }
        if reader.was_woken() {
            world.read(&mut queue, &reader);
        }
    }
    world.check_complete();
}

/// The number of sequences and their greatest length. Miri takes some thousand times as long for
/// each step.
const CASES: u32 = if cfg!(miri) { 4 } else { 1000 };
const LONGEST: usize = if cfg!(miri) { 30 } else { 200 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    /// Shows: M1
    #[test]
    fn every_message_comes_once_in_order_and_in_turn(actions in prop::collection::vec(action(), 1..LONGEST)) {
        play(&actions);
    }
}
