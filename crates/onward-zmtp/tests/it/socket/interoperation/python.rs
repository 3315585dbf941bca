//! libzmq in a Python program, with Debian's `python3-zmq`: the usual pairs, in every combination
//! of the matrix.
//!
//! The C program covers XPUB, XSUB and abstract names. To the Python binding they are only numbers
//! and texts for the same library.

use std::process::Stdio;

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind;
use onward_zmtp::{PullSocket, RepSocket, XpubSocket};
use tokio::process::Command;

use super::traffic::{be_answered, come_back, publish, pull, push, receive_published, reply, send_back, subscribe};
use crate::socket::support::events::within;
use crate::zmtp::peer::{Others, interpreter};

/// A program that sends a request, pushes the reply, and pushes what it then receives of its topic.
const PROGRAM: &str = r#"
import sys, zmq
context = zmq.Context()
req, push, sub = context.socket(zmq.REQ), context.socket(zmq.PUSH), context.socket(zmq.SUB)
for socket, endpoint in zip((req, push, sub), sys.argv[1:]):
    socket.connect(endpoint)
req.send_multipart([b"request", b"", b"of python"])
push.send_multipart(req.recv_multipart())
sub.setsockopt(zmq.SUBSCRIBE, b"topic")
push.send_multipart(sub.recv_multipart())
context.destroy(linger=10000)
"#;

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
    assert_eq!(within(rep.recv()).await.unwrap().frames(), ["request", "", "of python"]);
    rep.send(Message::from_iter(["reply", ""])).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["reply", ""]);
    assert_eq!(within(xpub.recv()).await.unwrap().frames(), [&b"\x01topic"[..]]);
    xpub.send(Message::from_iter(["another topic", "body"])).await.unwrap();
    xpub.send(Message::from_iter(["topic!", "body"])).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["topic!", "body"]);
    assert!(within(child.wait()).await.unwrap().success());
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_push_and_a_pull_of_python() {
    push(Others::python()).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pull_and_a_push_of_python() {
    pull(Others::python()).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pub_and_a_sub_of_python() {
    publish::<kind::Pub>(Others::python(), "digest-sub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_and_a_pub_of_python() {
    receive_published(Others::python(), "publish-pub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_and_a_rep_of_python() {
    be_answered(Others::python(), "echo-rep").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_and_a_req_of_python() {
    reply(Others::python(), "ask-req").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_router_of_python() {
    come_back::<kind::Dealer>(Others::python(), "echo-router", &[]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_and_a_dealer_of_python() {
    send_back::<kind::Router>(Others::python(), "ask-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pair_and_a_pair_of_python() {
    come_back::<kind::Pair>(Others::python(), "echo-pair", &[]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pair_and_a_pair_of_python_that_asks() {
    send_back::<kind::Pair>(Others::python(), "ask-pair").await;
}
