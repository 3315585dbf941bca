//! Turns: the decisions that follow from an arrival.

mod actions;
mod advance;
pub(super) mod allowed;
mod cancel;
mod ends;
mod finish;
mod items;
mod moments;
mod places;
mod publish;
mod retry;
mod scope;
pub(super) mod signals;
mod start;
mod task;
mod undo;
mod verdict;
mod waves;

pub(crate) use advance::advance;
use advance::{End, NotRead, Turn, cut, number};
