#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use onward_fuzz::{compare, connection, cuts, greeting, octet, options, security};
use onward_zmtp::protocol::SocketType;

// A greeting as it should be, then anything, for client and server.
fuzz_target!(|data: &[u8]| {
    let (side, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let options = Arc::new(options(SocketType::Router, security(1 + side % 2)));
    compare(|| connection(&options, 1), &[&greeting(1, "PLAIN", side % 2 == 0), bytes].concat(), cuts);
});
