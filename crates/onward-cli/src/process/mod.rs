//! Running other programs: in a process group of their own, with bounded output, so that they can be stopped as a whole.

mod capture;
mod group;
mod interrupts;
mod invocation;
mod runner;
mod spawner;

pub(crate) use capture::Captured;
pub(crate) use interrupts::Interrupts;
pub(crate) use invocation::{Invocation, find_program};
pub(crate) use runner::{End, Finished, Limits, Runner};
