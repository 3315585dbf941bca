//! Plays one sequence on two stores and compares them.

use std::fmt;
use std::sync::Arc;

use onward_store::{Change, EventCursor, Outcome, Result, Store, TaskId, Write};

use super::sequence_state::{SequenceState, without_words};
use super::steps::{Act, Step};
use super::store_view::{Told, Turn, View, follow, without_cursor};
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

/// The outcomes and events of a sequence. They show how much of what can happen did happen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Every outcome, in order.
    pub outcomes: Vec<Outcome>,
    /// Every event, in order.
    pub changes: Vec<Change>,
}

/// Plays a sequence on two stores. Compares every outcome and, after every step, every read.
///
/// # Errors
/// Returns the first difference between the stores. An error of either store counts as one.
///
/// # Panics
/// Panics if a store cannot be opened.
pub async fn check(one: &dyn Fixture, other: &dyn Fixture, steps: &[Step]) -> std::result::Result<Seen, Mismatch> {
    check_by_turns(one, other, steps, 1).await
}

/// Plays a sequence as [`check`] does, but compares only one in `turns` of the reads after each
/// step.
pub(super) async fn check_by_turns(
    one: &dyn Fixture,
    other: &dyn Fixture,
    steps: &[Step],
    turns: usize,
) -> std::result::Result<Seen, Mismatch> {
    let conditions = Conditions { payload_limit: PAYLOAD_LIMIT, ..Conditions::default() };
    let mut pair = Pair {
        stores: [TestStore::open_under(one, conditions.clone()).await, TestStore::open_under(other, conditions).await],
        cursors: [EventCursor::START; 2],
        slow: [EventCursor::START; 2],
        player: SequenceState::default(),
        seen: Seen::default(),
    };
    for (step, what) in steps.iter().enumerate() {
        let turn = Turn { number: step, of: turns };
        pair.play(what, step, turn).await.map_err(|what| Mismatch { step, what })?;
    }
    pair.everything().await.map_err(|what| Mismatch { step: steps.len(), what })?;
    Ok(pair.seen)
}

/// Returns the first read on which two stores differ, or `None` if all agree. Both stores must use
/// one clock. Compares tasks up to and including number `highest`, every list and count, and the
/// events.
///
/// # Errors
/// Returns the error of a store that cannot be read.
pub async fn difference(one: &dyn Store, other: &dyn Store, highest: TaskId) -> Result<Option<String>> {
    let now = one.clock().now();
    let views = [View::of(one, highest.0, now, Turn::ALL).await?, View::of(other, highest.0, now, Turn::ALL).await?];
    if let Some(difference) = views[0].difference(&views[1]) {
        return Ok(Some(difference));
    }
    let told = follow(one, &mut EventCursor::START.clone(), 1000).await?;
    let other_told = follow(other, &mut EventCursor::START.clone(), 1000).await?;
    Ok(same("the events", &told, &other_told).err())
}

struct Pair {
    stores: [TestStore; 2],
    cursors: [EventCursor; 2],
    /// The cursors of a reader that reads one event a step, so that prunes overtake it.
    slow: [EventCursor; 2],
    player: SequenceState,
    seen: Seen,
}

/// The result of a comparison: the error is a text for people that names the difference.
type Agreed = std::result::Result<(), String>;

impl Pair {
    async fn play(&mut self, step: &Step, number: usize, turn: Turn) -> Agreed {
        let clock = self.stores[0].clock();
        match step {
            Step::Apply(acts) => self.apply(acts).await?,
            Step::Advance(by) => clock.advance(*by),
            Step::SetBack(by) => clock.set_wall(self.stores[0].now().minus(*by)),
            Step::Reopen => {
                for store in &mut self.stores {
                    store.reopen().await;
                }
            }
        }
        self.events(number).await?;
        self.next_event().await?;
        self.reads(turn).await
    }

    async fn apply(&mut self, acts: &[Act]) -> Agreed {
        let now = self.stores[0].now();
        let writes: Vec<Write> = acts.iter().map(|act| self.player.write(act, now)).collect();
        let one = self.outcomes(0, &writes).await?;
        let other = self.outcomes(1, &writes).await?;
        for (write, (one, other)) in writes.iter().zip(one.iter().zip(&other)) {
            same(&format!("the outcomes of {write:?}"), one, other)?;
        }
        same("the outcomes", &one, &other)?;
        one.iter().for_each(|outcome| self.player.learn(outcome));
        self.seen.outcomes.extend(one);
        Ok(())
    }

    async fn outcomes(&self, index: usize, writes: &[Write]) -> std::result::Result<Vec<Outcome>, String> {
        let outcomes = answered(self.store(index).apply(writes.to_vec()).await)?;
        Ok(outcomes.into_iter().map(without_words).collect())
    }

    async fn reads(&mut self, turn: Turn) -> Agreed {
        let now = self.stores[0].now();
        let one = answered(View::of(self.store(0).as_ref(), self.player.highest, now, turn).await)?;
        let other = answered(View::of(self.store(1).as_ref(), self.player.highest, now, turn).await)?;
        one.difference(&other).map_or(Ok(()), Err)?;
        self.player.instances = one.instances.into_iter().map(|(task, instance, _)| (task, instance)).collect();
        let [schedules, ..] = one.schedules;
        self.player.schedules = schedules;
        Ok(())
    }

    /// Compares the events of both stores since the last step, read in small pages.
    async fn events(&mut self, number: usize) -> Agreed {
        let limit = number % 4 + 1;
        let mut told: [Vec<Told>; 2] = Default::default();
        for (index, told) in told.iter_mut().enumerate() {
            let store = Arc::clone(self.store(index));
            *told = answered(follow(store.as_ref(), &mut self.cursors[index], limit).await)?;
        }
        same("the events since the step before", &told[0], &told[1])?;
        let highest = told[0].iter().map(|(_, task, ..)| task.0).max();
        self.player.highest = self.player.highest.max(highest.unwrap_or(0));
        self.seen.changes.extend(told[0].iter().map(|(.., change)| *change));
        Ok(())
    }

    /// Compares what a slow reader gets from both stores: the next event that they still have, and
    /// whether earlier events are forgotten.
    async fn next_event(&mut self) -> Agreed {
        let mut told: [Option<(bool, Vec<Told>)>; 2] = Default::default();
        for (index, told) in told.iter_mut().enumerate() {
            let page = answered(self.store(index).events(self.slow[index], 1).await)?;
            self.slow[index] = page.next;
            let events = page.events.into_iter().map(without_cursor).collect();
            *told = Some((page.forgotten_up_to.is_some(), events));
        }
        same("the next event of a slow reader", &told[0], &told[1])
    }

    /// Compares everything once, at the end of the sequence.
    async fn everything(&mut self) -> Agreed {
        self.reads(Turn::ALL).await?;
        self.events_from_the_start().await
    }

    async fn events_from_the_start(&self) -> Agreed {
        let one = answered(follow(self.store(0).as_ref(), &mut EventCursor::START.clone(), 2).await)?;
        let other = answered(follow(self.store(1).as_ref(), &mut EventCursor::START.clone(), 3).await)?;
        same("the events from the start", &one, &other)
    }

    fn store(&self, index: usize) -> &Arc<dyn Store> {
        self.stores[index].inner()
    }
}

fn same<T: PartialEq + fmt::Debug>(what: &str, one: &T, other: &T) -> Agreed {
    if one == other { Ok(()) } else { Err(format!("{what}:\n{one:#?}\nand\n{other:#?}")) }
}

fn answered<T>(answer: Result<T>) -> std::result::Result<T, String> {
    answer.map_err(|error| format!("a store failed: {error}"))
}
