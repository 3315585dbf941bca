//! Several processes on one file: [`peers`] knows who they are, [`ticket_lock`] and [`write_lock`]
//! whose turn it is to write, and [`housekeeping`] is the thread that looks after the log and the
//! peers.

pub(super) mod checkpoint_trigger;
pub(super) mod housekeeping;
pub(super) mod lock_wait;
pub(super) mod notification_watermark;
pub(super) mod peers;
mod ticket_lock;
pub(super) mod write_lock;
