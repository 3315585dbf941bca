#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use onward_fuzz::{compare, connection, cuts, greeting, options, security};
use onward_zmtp::protocol::SocketType;

// A greeting as it should be, then anything.
fuzz_target!(|data: &[u8]| {
    let (cuts, bytes) = cuts(data);
    let options = Arc::new(options(SocketType::Router, security(0)));
    compare(|| connection(&options, 1), &[&greeting(1, "NULL", false), bytes].concat(), cuts);
});
