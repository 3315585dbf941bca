//! Debian's `python3-zmq` at the other end.

use std::process::Stdio;

use onward_zmtp::protocol::Message;
use onward_zmtp::{PullSocket, RepSocket, XpubSocket};
use tokio::process::Command;

use super::events::within;

/// Asks, pushes what it was answered, and pushes what it then hears of its topic.
const PROGRAM: &str = r#"
import sys, zmq
context = zmq.Context()
req, push, sub = context.socket(zmq.REQ), context.socket(zmq.PUSH), context.socket(zmq.SUB)
for socket, endpoint in zip((req, push, sub), sys.argv[1:]):
    socket.connect(endpoint)
req.send_multipart([b"question", b"", b"of python"])
push.send_multipart(req.recv_multipart())
sub.setsockopt(zmq.SUBSCRIBE, b"topic")
push.send_multipart(sub.recv_multipart())
context.destroy(linger=10000)
"#;

/// The interpreter, if it was prepared: `cargo xtask test` does.
fn interpreter() -> Option<String> {
    let interpreter = std::env::var("ONWARD_PYTHON_ZMQ").ok();
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "python3-zmq"));
    assert!(interpreter.is_some() || !is_required, "python3-zmq is required; run the tests with `cargo xtask test`");
    if interpreter.is_none() {
        println!("not tested: ONWARD_PYTHON_ZMQ is not set; `cargo xtask test` prepares python3-zmq");
    }
    interpreter
}

/// Shows: M4
#[tokio::test]
async fn a_program_in_python_asks_pushes_and_subscribes() {
    let Some(interpreter) = interpreter() else { return };
    let (mut rep, mut pull, mut xpub) = (RepSocket::new(), PullSocket::new(), XpubSocket::new());
    let endpoints = [
        rep.bind("tcp://127.0.0.1:*").await.unwrap().to_string(),
        pull.bind("tcp://127.0.0.1:*").await.unwrap().to_string(),
        xpub.bind("tcp://127.0.0.1:*").await.unwrap().to_string(),
    ];
    let mut child = Command::new(interpreter)
        .args(["-c", PROGRAM])
        .args(endpoints)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("python runs");
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["question", "", "of python"]);
    rep.send(Message::from_iter(["answer", ""])).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["answer", ""]);
    assert_eq!(within(xpub.recv()).await.unwrap().frames(), [&b"\x01topic"[..]]);
    xpub.send(Message::from_iter(["another topic", "body"])).await.unwrap();
    xpub.send(Message::from_iter(["topic!", "body"])).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["topic!", "body"]);
    assert!(within(child.wait()).await.unwrap().success());
}
