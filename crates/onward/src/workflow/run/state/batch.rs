//! The items of a step with `each`.

use std::sync::{Arc, OnceLock};

use onward_store::TaskId;

use super::json::Json;
use super::pages::Pages;
use super::step_state::StepState;
use crate::workflow::expression::Value;
use crate::workflow::template::{Each, Tolerate};

/// The progress of a step with `each`.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workflow::run) struct Batch {
    pub(in crate::workflow::run) count: u32,
    /// The first item that was never looked at.
    pub(in crate::workflow::run) next: u32,
    pub(in crate::workflow::run) open: u32,
    pub(in crate::workflow::run) completed: u32,
    /// The items that ended in another way.
    pub(in crate::workflow::run) bad: u32,
    /// The items that were cancelled with the step.
    pub(in crate::workflow::run) cancelled: u32,
    /// True if no further item starts.
    pub(in crate::workflow::run) is_stopped: bool,
    pub(in crate::workflow::run) items: Pages<Item, 256>,
    /// The list of items, once it was evaluated.
    pub(in crate::workflow::run) list: CachedValue,
}

/// An item of a step with `each`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::workflow::run) struct Item {
    pub(in crate::workflow::run) task: Option<TaskId>,
    /// Pending until its task has ended.
    pub(in crate::workflow::run) state: StepState,
    pub(in crate::workflow::run) may_have_happened: bool,
    pub(in crate::workflow::run) is_omitted: bool,
    /// The attempts that have ended.
    pub(in crate::workflow::run) attempts: u32,
    pub(in crate::workflow::run) result: Option<Json>,
    pub(in crate::workflow::run) error: Option<Arc<str>>,
}

/// A value that is computed from the state alone. It is no part of the state, so all are equal.
#[derive(Debug, Clone, Default)]
pub(in crate::workflow::run) struct CachedValue(pub(in crate::workflow::run) Arc<OnceLock<Value>>);

impl PartialEq for CachedValue {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Batch {
    pub(in crate::workflow::run) fn new(count: u32) -> Self {
        let items = Pages::new(count as usize);
        let list = CachedValue::default();
        Self { count, next: 0, open: 0, completed: 0, bad: 0, cancelled: 0, is_stopped: false, items, list }
    }

    /// Returns true if more items ended badly than may.
    pub(in crate::workflow::run) fn is_over(&self, each: &Each) -> bool {
        self.bad > tolerated_failures(each.tolerate, self.count)
    }

    /// Returns true if no further item starts.
    pub(in crate::workflow::run) fn is_closed(&self, each: &Each) -> bool {
        self.is_stopped || self.is_over(each) || self.completed + self.bad + self.open >= self.count
    }

    /// Removes the bad end of an item that has another attempt.
    pub(in crate::workflow::run) fn try_again(&mut self, index: u32) {
        let Some(item) = self.items.get_mut(index as usize).filter(|item| item.state.is_bad()) else { return };
        let (may_have_happened, attempts) = (item.may_have_happened, item.attempts);
        *item = Item { may_have_happened, attempts, ..Item::default() };
        self.bad = self.bad.saturating_sub(1);
    }

    /// Prepares the items for another start: all, or those that did not complete.
    pub(in crate::workflow::run) fn reopen(&mut self, keeps_completed: bool) {
        for index in 0..self.items.len() {
            let Some(item) = self.items.get(index) else { continue };
            let is_kept = keeps_completed && item.state == StepState::Completed;
            let (is_pending, may_have_happened) = (item.state == StepState::Pending, item.may_have_happened);
            if !is_kept
                && !is_pending
                && let Some(item) = self.items.get_mut(index)
            {
                *item = Item { may_have_happened, ..Item::default() };
            }
        }
        (self.next, self.open, self.bad, self.cancelled, self.is_stopped) = (0, 0, 0, 0, false);
        if !keeps_completed {
            self.completed = 0;
        }
        self.list = CachedValue::default();
    }

    /// Returns a batch of another number of items. It may have had the effects of the earlier one.
    pub(in crate::workflow::run) fn resized(&self, count: u32) -> Self {
        let mut batch = Self::new(count);
        for (index, before) in self.items.iter().enumerate() {
            if let Some(item) = batch.items.get_mut(index) {
                item.may_have_happened = before.may_have_happened;
            }
        }
        batch
    }
}

/// Returns the number of items that may end badly.
fn tolerated_failures(tolerate: Tolerate, count: u32) -> u32 {
    match tolerate {
        Tolerate::Items(items) => items,
        Tolerate::All => count,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a u32")]
        Tolerate::Percent(percent) => (f64::from(count) * percent / 100.0).clamp(0.0, f64::from(count)) as u32,
    }
}
