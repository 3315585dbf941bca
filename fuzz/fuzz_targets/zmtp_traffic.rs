#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use onward_fuzz::{compare, connection, cuts, greeting, octet, options, security};
use onward_zmtp::protocol::SocketType;

const READY_OF_SUB: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
const READY_OF_PUSH: &[u8] = b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH";

// A handshake as it should be, then frames and commands of any kind, from peers of ZMTP 3.0 and 3.1.
fuzz_target!(|data: &[u8]| {
    let (kind, data) = octet(data);
    let (cuts, bytes) = cuts(data);
    let (socket_type, ready) =
        if kind & 1 == 0 { (SocketType::Xpub, READY_OF_SUB) } else { (SocketType::Pull, READY_OF_PUSH) };
    let options = Arc::new(options(socket_type, security(0)));
    let bytes = [&greeting(kind >> 1 & 1, "NULL", false), ready, bytes].concat();
    compare(|| connection(&options, 1), &bytes, cuts);
});
