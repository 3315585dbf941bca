//! The options of a socket, and the checks of them.

pub(super) mod checks;
pub(super) mod high_water_mark;
pub(super) mod keepalive;
pub(super) mod policies;
pub(super) mod send_limits;
pub(super) mod socket_options;
