//! Counting of operations.

use super::bounds::{EXPRESSION_OPERATIONS, TEXT_PER_OPERATION, TURN_OPERATIONS};
use super::error::FailureCause;

/// The number of operations that remain for the evaluations of one turn. Each evaluation uses some.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// Returns a budget of a number of operations.
    #[must_use]
    pub fn new(operations: u64) -> Self {
        Self { left: operations }
    }

    /// Returns the operations that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }
}

impl Default for Budget {
    /// Returns the budget of a turn: [`TURN_OPERATIONS`].
    fn default() -> Self {
        Self::new(TURN_OPERATIONS)
    }
}

/// The number of operations that remain for one evaluation.
pub(super) struct Meter<'a> {
    budget: &'a mut Budget,
    left: u64,
    /// The bound that is reached once nothing is left.
    bound: FailureCause,
}

/// The error of an evaluation without operations left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

impl<'a> Meter<'a> {
    /// Starts to count the operations of one evaluation.
    pub(super) fn new(budget: &'a mut Budget) -> Self {
        let bound = if budget.left < EXPRESSION_OPERATIONS {
            FailureCause::TurnOperations
        } else {
            FailureCause::ExpressionOperations
        };
        Self { left: budget.left.min(EXPRESSION_OPERATIONS), bound, budget }
    }

    /// Uses a number of operations.
    pub(super) fn charge(&mut self, operations: u64) -> Result<(), Exhausted> {
        let taken = operations.min(self.left);
        self.left -= taken;
        self.budget.left -= taken;
        if taken == operations { Ok(()) } else { Err(Exhausted) }
    }

    /// Uses the operations for reading or building a text, or as many elements.
    pub(super) fn charge_text(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.charge(count(bytes / TEXT_PER_OPERATION))
    }

    /// Uses an operation for each of some elements.
    pub(super) fn charge_elements(&mut self, elements: usize) -> Result<(), Exhausted> {
        self.charge(count(elements))
    }

    /// Returns the most bytes of text that can still be made.
    pub(super) fn text_left(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).saturating_mul(TEXT_PER_OPERATION)
    }

    /// Returns the bound that was reached, after [`charge`](Self::charge) has failed.
    pub(super) fn bound(&self) -> FailureCause {
        self.bound
    }
}

/// Returns a size as a number of operations.
fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
