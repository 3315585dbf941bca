//! The choice of the queue that has the next turn.
//!
//! A claim takes tasks in turns, one task each. The [`Chooser`] returns the next turn among the
//! queues that have work; the caller takes the first task of that queue and reports it. The state
//! between claims is a value, a [`QueueChoice`](crate::QueueChoice), so claims of one task each are
//! as fair as one claim of thousands.
//!
//! * **Strict**: the highest weight first.
//! * **Lenient**: a lottery (Waldspurger and Weihl, "Lottery scheduling: flexible
//!   proportional-share resource management", 1994). Each queue has as many tickets as its weight.
//! * **Interleaved**: interleaved weighted round robin (Katevenis, Sidiropoulos and Courcoubetis,
//!   "Weighted round-robin cell multiplexing in a general-purpose ATM switch chip", 1991). A round
//!   has as many cycles as the largest weight. In cycle `c` each queue of a weight of at least `c`
//!   has one turn. Take as many consecutive turns as the sum of all weights: each queue that always
//!   has work gets at least its weight, and exactly its weight if all queues have work.
//!
//! Cost of a turn: constant for interleaved (amortized over a round), logarithmic in the number of
//! queues for lenient, linear in the number of different weights for strict.

mod chooser;
mod round;
#[cfg(test)]
mod tests;
mod tickets;

pub use chooser::{Chooser, QueueCandidate};
