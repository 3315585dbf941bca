//! Running other programs, with bounded output and so that each can be stopped with all its
//! descendants.

mod capture;
#[cfg(feature = "serve")]
mod hang_ups;
mod interrupts;
mod invocation;
mod open_files;
mod orphans;
mod readiness;
mod runner;
mod supervisor;

pub(crate) use capture::Captured;
#[cfg(feature = "serve")]
pub(crate) use hang_ups::{HangUp, HangUps};
pub(crate) use interrupts::Interrupts;
pub(crate) use invocation::{Invocation, find_program};
pub(crate) use open_files::{job_limit, prepare};
pub(crate) use runner::{End, Finished, Limits, NotRun, Program, Runner};
pub(crate) use supervisor::serve_if_asked;
