//! Sessions of workers, and changes due to time.

mod ended_processes;
mod session;
mod sweep;
