#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use onward_fuzz::{compare, connection, cuts, octet, options, security};
use onward_zmtp::protocol::SocketType;

// Octets of any kind from the first one on, for each side of each mechanism.
fuzz_target!(|data: &[u8]| {
    let (side, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let options = Arc::new(options(SocketType::Router, security(side)));
    compare(|| connection(&options, 1), bytes, cuts);
});
