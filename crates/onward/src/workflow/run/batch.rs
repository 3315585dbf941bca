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
pub(super) struct Batch {
    pub(super) count: u32,
    /// The first item that was never looked at.
    pub(super) next: u32,
    pub(super) open: u32,
    pub(super) completed: u32,
    /// The items that ended in another way.
    pub(super) bad: u32,
    /// The items that were cancelled with the step.
    pub(super) cancelled: u32,
    /// True if no further item starts.
    pub(super) is_stopped: bool,
    pub(super) items: Pages<Item, 256>,
    /// The list of items, once it was evaluated.
    pub(super) list: Memo,
}

/// An item of a step with `each`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Item {
    pub(super) task: Option<TaskId>,
    /// Pending until its task has ended.
    pub(super) state: StepState,
    pub(super) may_have_happened: bool,
    pub(super) is_omitted: bool,
    pub(super) result: Option<Json>,
    pub(super) error: Option<Arc<str>>,
}

/// A value that is computed from the state alone. It is no part of the state, so all are equal.
#[derive(Debug, Clone, Default)]
pub(super) struct Memo(pub(super) Arc<OnceLock<Value>>);

impl PartialEq for Memo {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Batch {
    pub(super) fn new(count: u32) -> Self {
        let items = Pages::new(count as usize);
        let list = Memo::default();
        Self { count, next: 0, open: 0, completed: 0, bad: 0, cancelled: 0, is_stopped: false, items, list }
    }

    /// Returns true if more items ended badly than may.
    pub(super) fn is_over(&self, each: &Each) -> bool {
        self.bad > tolerated(each.tolerate, self.count)
    }

    /// Returns true if no further item starts.
    pub(super) fn is_closed(&self, each: &Each) -> bool {
        self.is_stopped || self.is_over(each) || self.completed + self.bad + self.open >= self.count
    }

    /// Prepares the items that did not complete for another start.
    pub(super) fn reopen(&mut self) {
        for index in 0..self.items.len() {
            let is_completed = self.items.get(index).is_some_and(|item| item.state == StepState::Completed);
            let is_untouched = self.items.get(index).is_some_and(|item| *item == Item::default());
            if let (false, false, Some(item)) = (is_completed, is_untouched, self.items.get_mut(index)) {
                *item = Item { may_have_happened: item.may_have_happened, ..Item::default() };
            }
        }
        (self.next, self.open, self.bad, self.cancelled, self.is_stopped) = (0, 0, 0, 0, false);
        self.list = Memo::default();
    }
}

/// Returns the number of items that may end badly.
fn tolerated(tolerate: Tolerate, count: u32) -> u32 {
    match tolerate {
        Tolerate::Items(items) => items,
        Tolerate::All => count,
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a u32")]
        Tolerate::Percent(percent) => (f64::from(count) * percent / 100.0).clamp(0.0, f64::from(count)) as u32,
    }
}
