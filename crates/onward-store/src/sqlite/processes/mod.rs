//! Several processes on one file: [`peers`] knows who they are, [`ticket_lock`] and [`write_lock`]
//! whose turn it is to write, and [`housekeeping`] is the thread that looks after the log and the
//! peers.

pub(in crate::sqlite) mod housekeeping;
pub(in crate::sqlite) mod lock_wait;
pub(in crate::sqlite) mod notification_watermark;
pub(in crate::sqlite) mod peers;
pub(in crate::sqlite) mod ticket_lock;
pub(in crate::sqlite) mod write_lock;
