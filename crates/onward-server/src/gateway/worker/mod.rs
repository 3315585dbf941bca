//! A worker as the engine sees it: commands of its session, and events for it.

mod checkpoints;
mod driver;
mod engine;
mod event;
mod foreign_attempts;
mod handler;
mod history_file;
mod kept_turns;
mod message_writer;
mod new_task;
mod outcome;
mod replies;
mod turn_events;
mod turn_reply;
mod turns;

pub(super) use driver::Driver;
pub(super) use event::Event;
pub use history_file::history_json;
