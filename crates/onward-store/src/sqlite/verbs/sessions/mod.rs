//! Sessions of workers, and what time changes.

mod ended_processes;
mod session;
mod sweep;
