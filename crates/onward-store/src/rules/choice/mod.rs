//! Which queue the next turn belongs to.
//!
//! A claim hands out tasks in turns, one each. The chooser says whose turn it is among those that
//! have work; whoever asks takes that one's first task and says so. What is left over from one
//! claim to the next is a [`QueueChoice`](crate::QueueChoice), a value, so that a claim of one task
//! at a time is as fair as one of thousands.
//!
//! * **Strict**: the highest weight first.
//! * **Lenient**: a lottery (Waldspurger and Weihl, "Lottery scheduling: flexible
//!   proportional-share resource management", 1994): each queue holds as many tickets as its
//!   weight.
//! * **Interleaved**: interleaved weighted round robin (Katevenis, Sidiropoulos and Courcoubetis,
//!   "Weighted round-robin cell multiplexing in a general-purpose ATM switch chip", 1991): a round
//!   has as many cycles as the largest weight; in cycle `c` each queue of a weight of at least `c`
//!   has one turn. Over as many turns as all weights together, wherever they begin, each queue that
//!   has work throughout gets at least its weight, and exactly that if all have.
//!
//! Cost of a turn: constant for interleaved (over a round), the logarithm of the number of queues
//! for lenient, the number of different weights for strict.

mod chooser;
mod round;
#[cfg(test)]
mod tests;
mod tickets;

pub use chooser::{Chooser, Line};
