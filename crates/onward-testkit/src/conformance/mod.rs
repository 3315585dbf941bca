//! The cases, one file per family. [`conformance!`](crate::conformance!) lists them.

pub mod all;
pub mod attempts;
pub mod bulk;
pub mod children;
pub mod claim;
pub mod control;
pub mod dependencies;
pub mod events;
pub mod flow;
pub mod history;
pub mod intervene;
pub mod io;
pub mod keys;
pub mod limits;
pub mod news;
pub mod queues;
pub mod reads;
pub mod removal;
pub mod reopen;
pub mod schedules;
pub mod sessions;
pub mod shares;
pub mod submit;
pub mod sweep;
pub mod tags;
pub mod urgency;
