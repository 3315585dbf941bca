//! The cases, one file per family. [`conformance!`](crate::conformance!) lists them.

pub mod all;
pub mod attempts;
pub mod children;
pub mod claim;
pub mod control;
pub mod dependencies;
pub mod events;
pub mod keys;
pub mod limits;
pub mod news;
pub mod queues;
pub mod reads;
pub mod removal;
pub mod reopen;
pub mod sessions;
pub mod submit;
pub mod sweep;
