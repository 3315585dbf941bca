//! Several processes on one file. [`peers`] lists the processes. [`ticket_lock`] and [`write_lock`]
//! order their writes. [`housekeeping`] is the thread that maintains the log and checks the peers.

pub(super) mod checkpoint_trigger;
pub(super) mod housekeeping;
pub(super) mod lock_wait;
pub(super) mod notification_watermark;
pub(super) mod peers;
mod ticket_lock;
pub(super) mod write_lock;
