//! Runs one sequence on two stores and compares them.

use std::fmt;
use std::sync::Arc;

use onward_store::{Change, EventCursor, Outcome, Result, Store, StoreReads, TaskId, Write};

use super::sequence_state::{SequenceState, comparable};
use super::steps::{Operation, Step};
use super::store_view::{EventContent, ReadShare, View, follow, without_cursor};
use crate::fixture::{Conditions, Fixture};
use crate::test_store::TestStore;

/// The limit on payloads in a sequence, in bytes. Some generated payloads are larger.
const PAYLOAD_LIMIT: usize = 32;

/// A difference between two stores.
#[derive(Debug)]
pub struct Mismatch {
    /// The step of the sequence at which the stores differ, counted from 0.
    pub step: usize,
    /// The replies that differ: that of one store and that of the other.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after step {} the stores differ:\n{}", self.step, self.what)
    }
}

impl std::error::Error for Mismatch {}

/// The outcomes and events of a sequence. They show how many of the possible ones occurred.
#[derive(Debug, Default)]
pub struct Trace {
    /// Every outcome, in order.
    pub outcomes: Vec<Outcome>,
    /// Every event, in order.
    pub changes: Vec<Change>,
}

/// Runs a sequence on two stores. Compares every outcome and, after every step, every read.
///
/// # Errors
/// Returns the first difference between the stores. An error of either store counts as one.
///
/// # Panics
/// Panics if a store cannot be opened.
pub async fn check(one: &dyn Fixture, other: &dyn Fixture, steps: &[Step]) -> std::result::Result<Trace, Mismatch> {
    check_sampled(one, other, steps, 1).await
}

/// Runs a sequence as [`check`] does, but compares only one in `one_in` of the reads after each
/// step.
pub(super) async fn check_sampled(
    one: &dyn Fixture,
    other: &dyn Fixture,
    steps: &[Step],
    one_in: usize,
) -> std::result::Result<Trace, Mismatch> {
    let conditions = Conditions { payload_limit: PAYLOAD_LIMIT, ..Conditions::default() };
    let mut pair = Pair {
        stores: [TestStore::open_under(one, conditions.clone()).await, TestStore::open_under(other, conditions).await],
        cursors: [EventCursor::START; 2],
        slow: [EventCursor::START; 2],
        state: SequenceState::default(),
        trace: Trace::default(),
    };
    for (step, what) in steps.iter().enumerate() {
        let share = ReadShare { number: step, one_in };
        pair.run_step(what, step, share).await.map_err(|what| Mismatch { step, what })?;
    }
    pair.compare_everything().await.map_err(|what| Mismatch { step: steps.len(), what })?;
    Ok(pair.trace)
}

/// Returns the first read on which two stores differ, or `None` if all agree. Both stores must use
/// one clock. Compares tasks up to and including number `highest`, every list and count, and the
/// events.
///
/// # Errors
/// Returns the error of a store that cannot be read.
pub async fn difference(one: &dyn Store, other: &dyn Store, highest: TaskId) -> Result<Option<String>> {
    let now = one.clock().now();
    let views =
        [View::of(one, highest.0, now, ReadShare::ALL).await?, View::of(other, highest.0, now, ReadShare::ALL).await?];
    if let Some(difference) = views[0].difference(&views[1]) {
        return Ok(Some(difference));
    }
    let events = follow(one, &mut EventCursor::START.clone(), 1000).await?;
    let other_events = follow(other, &mut EventCursor::START.clone(), 1000).await?;
    Ok(same("the events", &events, &other_events).err())
}

struct Pair {
    stores: [TestStore; 2],
    cursors: [EventCursor; 2],
    /// The cursors of a reader that reads one event a step, so that prunes overtake it.
    slow: [EventCursor; 2],
    state: SequenceState,
    trace: Trace,
}

/// The result of a comparison: the error is a text for people that names the difference.
type Compared = std::result::Result<(), String>;

impl Pair {
    async fn run_step(&mut self, step: &Step, number: usize, share: ReadShare) -> Compared {
        let clock = self.stores[0].clock();
        match step {
            Step::Apply(operations) => self.apply(operations).await?,
            Step::Advance(by) => clock.advance(*by),
            Step::SetBack(by) => clock.set_wall(self.stores[0].now().minus(*by)),
            Step::Reopen => {
                for store in &mut self.stores {
                    store.reopen().await;
                }
            }
        }
        self.compare_events(number).await?;
        self.compare_next_event().await?;
        self.compare_reads(share).await
    }

    async fn apply(&mut self, operations: &[Operation]) -> Compared {
        let now = self.stores[0].now();
        let writes: Vec<Write> = operations.iter().map(|operation| self.state.write(operation, now)).collect();
        let one = self.outcomes(0, &writes).await?;
        let other = self.outcomes(1, &writes).await?;
        for (write, (one, other)) in writes.iter().zip(one.iter().zip(&other)) {
            same(&format!("the outcomes of {write:?}"), one, other)?;
        }
        same("the outcomes", &one, &other)?;
        one.iter().for_each(|outcome| self.state.remember(outcome));
        self.trace.outcomes.extend(one);
        Ok(())
    }

    async fn outcomes(&self, index: usize, writes: &[Write]) -> std::result::Result<Vec<Outcome>, String> {
        let outcomes = or_message(self.store(index).apply(writes.to_vec()).await)?;
        Ok(outcomes.into_iter().map(comparable).collect())
    }

    async fn compare_reads(&mut self, share: ReadShare) -> Compared {
        let now = self.stores[0].now();
        let one = or_message(View::of(self.store(0).as_ref(), self.state.highest, now, share).await)?;
        let other = or_message(View::of(self.store(1).as_ref(), self.state.highest, now, share).await)?;
        one.difference(&other).map_or(Ok(()), Err)?;
        self.state.instances = one.instances.into_iter().map(|(task, instance, _)| (task, instance)).collect();
        let [schedules, ..] = one.schedules;
        self.state.schedules = schedules;
        Ok(())
    }

    /// Compares the events of both stores since the last step, read in small pages.
    async fn compare_events(&mut self, number: usize) -> Compared {
        let limit = number % 4 + 1;
        let mut events: [Vec<EventContent>; 2] = Default::default();
        for (index, events) in events.iter_mut().enumerate() {
            let store = Arc::clone(self.store(index));
            *events = or_message(follow(store.as_ref(), &mut self.cursors[index], limit).await)?;
        }
        same("the events since the step before", &events[0], &events[1])?;
        let highest = events[0].iter().map(|(_, task, ..)| task.0).max();
        self.state.highest = self.state.highest.max(highest.unwrap_or(0));
        self.trace.changes.extend(events[0].iter().map(|(.., change)| *change));
        Ok(())
    }

    /// Compares what a slow reader gets from both stores: the next event that they still have, and
    /// whether earlier events are forgotten.
    async fn compare_next_event(&mut self) -> Compared {
        let mut events: [Option<(bool, Vec<EventContent>)>; 2] = Default::default();
        for (index, events) in events.iter_mut().enumerate() {
            let page = or_message(self.store(index).events(self.slow[index], 1).await)?;
            self.slow[index] = page.next;
            let content = page.events.into_iter().map(without_cursor).collect();
            *events = Some((page.forgotten_up_to.is_some(), content));
        }
        same("the next event of a slow reader", &events[0], &events[1])
    }

    /// Compares everything once, at the end of the sequence.
    async fn compare_everything(&mut self) -> Compared {
        self.compare_reads(ReadShare::ALL).await?;
        self.compare_all_events().await
    }

    async fn compare_all_events(&self) -> Compared {
        let one = or_message(follow(self.store(0).as_ref(), &mut EventCursor::START.clone(), 2).await)?;
        let other = or_message(follow(self.store(1).as_ref(), &mut EventCursor::START.clone(), 3).await)?;
        same("the events from the start", &one, &other)
    }

    fn store(&self, index: usize) -> &Arc<dyn Store> {
        self.stores[index].inner()
    }
}

fn same<T: PartialEq + fmt::Debug>(what: &str, one: &T, other: &T) -> Compared {
    if one == other { Ok(()) } else { Err(format!("{what}:\n{one:#?}\nand\n{other:#?}")) }
}

fn or_message<T>(result: Result<T>) -> std::result::Result<T, String> {
    result.map_err(|error| format!("a store failed: {error}"))
}
