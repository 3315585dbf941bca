//! Running other programs: in a process group of their own, with bounded output, so that they can be stopped as a whole.

mod capture;
mod group;
mod interrupts;
mod invocation;
mod open_files;
mod orphans;
mod readiness;
mod runner;
mod spawner;

pub(crate) use capture::Captured;
pub(crate) use interrupts::Interrupts;
pub(crate) use invocation::{Invocation, find_program};
pub(crate) use open_files::{prepare, room_for};
pub(crate) use runner::{End, Finished, Limits, NotRun, Program, Runner};
