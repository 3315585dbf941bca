//! Compares the acknowledgements of a store with its content.

use std::collections::HashSet;

use onward_store::{Change, EventCursor, QueueRecord, Store, StoreReads, TaskId, TaskState};
use onward_testkit::soak;

use crate::load::Fact;

/// The knowledge about one store.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Tasks that were acknowledged as new.
    submitted: HashSet<i64>,
    /// Tasks that were acknowledged as completed.
    completed: HashSet<i64>,
    /// Tasks named by an acknowledgement since the last examination.
    fresh: HashSet<i64>,
    /// Tasks that were submitted according to the events.
    events_submitted: HashSet<i64>,
    /// Tasks that were completed according to the events.
    events_completed: HashSet<i64>,
    /// The last submitted task in the events.
    last_event_submitted: i64,
    taken_back: u64,
    cursor: EventCursor,
}

impl Known {
    pub(crate) fn learn(&mut self, facts: &[Fact], tally: &mut Tally) {
        self.fresh.clear();
        for fact in facts {
            match *fact {
                Fact::Attempted(count) => tally.sum.attempted += count,
                Fact::Submitted(id) => {
                    tally.sum.acknowledged += 1;
                    self.fresh.insert(id);
                    if !self.submitted.insert(id) {
                        tally.doubled(format!("task {id} was acknowledged to two submits"));
                    }
                }
                Fact::Duplicate(id) => {
                    tally.sum.acknowledged += 1;
                    self.fresh.insert(id);
                }
                Fact::Refused(_) => tally.refused += 1,
                Fact::Quiet => {}
                Fact::Completed(id) => {
                    self.fresh.insert(id);
                    if !self.completed.insert(id) {
                        tally.doubled(format!("task {id} was acknowledged as completed twice"));
                    }
                }
            }
        }
    }

    /// Returns how many of these completions are of tasks that existed at the last examination.
    #[cfg(feature = "postgres")]
    pub(crate) fn completed_since(&self, facts: &[Fact]) -> u64 {
        let is_older = |fact: &&Fact| matches!(fact, Fact::Completed(id) if *id <= self.last_event_submitted);
        facts.iter().filter(is_older).count() as u64
    }

    /// Compares the acknowledgements with every event, and with the rows of up to `rows` of the
    /// tasks that were named since the last examination.
    pub(crate) async fn examine(&mut self, store: &dyn Store, rows: usize, tally: &mut Tally) {
        self.examine_tasks(store, rows, tally).await;
        self.read_events(store, tally).await;
        for id in self.fresh.difference(&self.events_submitted) {
            tally.missing(format!("the submission of task {id} is in no event"));
        }
        for id in &self.completed {
            if !self.events_completed.contains(id) {
                tally.missing(format!("the completion of task {id} is in no event"));
            }
        }
    }

    /// Returns the number of leases that were taken back from lapsed sessions, according to the
    /// events.
    pub(crate) fn taken_back(&self) -> u64 {
        self.taken_back
    }

    /// Checks the number of tasks. No call may be under way.
    pub(crate) async fn examine_sizes(&self, store: &dyn Store, tally: &Tally) {
        let all: u64 = store.queues().await.unwrap().iter().map(size).sum();
        assert_eq!(
            all,
            self.events_submitted.len() as u64,
            "seed {}: tasks live and ended, against tasks submitted",
            tally.sum.seed
        );
    }

    async fn examine_tasks(&self, store: &dyn Store, rows: usize, tally: &mut Tally) {
        for id in self.fresh.iter().take(rows) {
            match store.task(TaskId(*id)).await.unwrap() {
                None => tally.missing(format!("task {id} was acknowledged and is gone")),
                Some(task) if self.completed.contains(id) && task.state != TaskState::Completed => {
                    tally.missing(format!("the completion of task {id} was acknowledged and it is {}", task.state));
                }
                Some(_) => {}
            }
        }
    }

    /// Reads the events since the last examination.
    async fn read_events(&mut self, store: &dyn Store, tally: &mut Tally) {
        loop {
            let page = store.events(self.cursor, 1000).await.unwrap();
            self.cursor = page.next;
            if page.events.is_empty() {
                return;
            }
            for event in page.events {
                let id = event.task.0;
                match event.change {
                    Change::Submitted if id <= self.last_event_submitted => {
                        tally.doubled(format!("the number {id} was given twice"));
                    }
                    Change::Submitted => {
                        self.last_event_submitted = id;
                        self.events_submitted.insert(id);
                    }
                    Change::LeaseLost => self.taken_back += 1,
                    Change::Completed if !self.events_completed.insert(id) => {
                        tally.doubled(format!("task {id} was completed twice"));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn size(queue: &QueueRecord) -> u64 {
    queue.scheduled + queue.waiting + queue.running + queue.ended.total()
}

/// The sum of a test: attempted and acknowledged submits, and tasks taken back from a killed
/// process.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sum: soak::Tally,
    /// Ends that came too late.
    pub(crate) refused: u64,
    pub(crate) complaints: Vec<String>,
}

impl Tally {
    fn missing(&mut self, complaint: String) {
        self.sum.lost += 1;
        self.complaints.push(complaint);
    }

    fn doubled(&mut self, complaint: String) {
        self.sum.duplicated += 1;
        self.complaints.push(complaint);
    }
}
