//! Running tasks: one dispatcher for each run of an engine.
//!
//! The [`Dispatcher`] is a loop around calls of the store: it takes every attempt that has ended,
//! adds a claim for as many tasks as slots will soon have room for, and applies both together.
//! While that commit is under way, slots go on with what is buffered, and further such calls may
//! begin. [`Floor`] is what dispatcher and slots share. What is decided is decided in `plan`,
//! `agenda` and `verdict`, which are plain functions of values.

mod agenda;
mod batch;
mod buffer;
mod calls;
mod choosing;
mod dispatcher;
mod drive;
mod fair_turns;
mod floor;
mod leftover;
mod pace;
mod plan;
mod preempting;
mod settle;
mod slot;
mod slot_time;
mod stopping;
mod throttling;
mod verdict;

pub(crate) use dispatcher::{Dispatcher, Goal};
pub(crate) use floor::Floor;
