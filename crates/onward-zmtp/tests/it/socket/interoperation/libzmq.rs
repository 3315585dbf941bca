//! libzmq in a C program: every pair of compatible types, in every combination of the matrix.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward_zmtp::PullSocket;
use onward_zmtp::socket::{Endpoint, SocketOptions, kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::traffic::{
    be_answered, come_back, greet_and_send_back, publish, pull, push, receive_published, reply, send_back, subscribe,
    subscribe_by_message,
};
use crate::socket::support::events::{connected, within};
use crate::socket::support::raw::{Raw, listen};
use crate::zmtp::peer::{Others, Peer, program};

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_dealer_of_libzmq() {
    come_back::<kind::Dealer>(Others::libzmq(), "echo-dealer", &[]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_dealer_of_libzmq_that_asks() {
    send_back::<kind::Dealer>(Others::libzmq(), "ask-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_router_of_libzmq() {
    come_back::<kind::Dealer>(Others::libzmq(), "echo-router", &[]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_rep_of_libzmq() {
    come_back::<kind::Dealer>(Others::libzmq(), "echo-rep", &["address", ""]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pair_and_a_pair_of_libzmq() {
    come_back::<kind::Pair>(Others::libzmq(), "echo-pair", &[]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pair_and_a_pair_of_libzmq_that_asks() {
    send_back::<kind::Pair>(Others::libzmq(), "ask-pair").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_and_a_rep_of_libzmq() {
    be_answered(Others::libzmq(), "echo-rep").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_and_a_router_of_libzmq() {
    be_answered(Others::libzmq(), "echo-router").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_and_a_req_of_libzmq() {
    reply(Others::libzmq(), "ask-req").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_and_a_dealer_of_libzmq() {
    reply(Others::libzmq(), "enquire-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_and_a_req_of_libzmq() {
    send_back::<kind::Router>(Others::libzmq(), "ask-req").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_and_a_dealer_of_libzmq() {
    send_back::<kind::Router>(Others::libzmq(), "ask-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_and_a_router_of_libzmq() {
    come_back::<kind::Router>(Others::libzmq(), "echo-router", &["theirs"]).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_and_a_router_of_libzmq_that_asks() {
    greet_and_send_back(Others::libzmq(), "ask-router").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_push_and_a_pull_of_libzmq() {
    push(Others::libzmq()).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pull_and_a_push_of_libzmq() {
    pull(Others::libzmq()).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pub_and_a_sub_of_libzmq() {
    publish::<kind::Pub>(Others::libzmq(), "digest-sub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pub_and_an_xsub_of_libzmq() {
    publish::<kind::Pub>(Others::libzmq(), "digest-xsub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xpub_and_a_sub_of_libzmq() {
    publish::<kind::Xpub>(Others::libzmq(), "digest-sub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xpub_and_an_xsub_of_libzmq() {
    publish::<kind::Xpub>(Others::libzmq(), "digest-xsub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_and_a_pub_of_libzmq() {
    receive_published(Others::libzmq(), "publish-pub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_and_an_xpub_of_libzmq() {
    receive_published(Others::libzmq(), "publish-xpub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xsub_and_a_pub_of_libzmq() {
    receive_published(Others::libzmq(), "publish-pub", subscribe_by_message).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xsub_and_an_xpub_of_libzmq() {
    receive_published(Others::libzmq(), "publish-xpub", subscribe_by_message).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_with_libzmq_continue_without_a_receiver() {
    let Some(program) = program() else { return };
    let interval = std::time::Duration::from_millis(100);
    let heartbeat = onward_zmtp::protocol::Heartbeat::every(interval);
    let pull = PullSocket::with_options(SocketOptions::new().heartbeat(heartbeat));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let (_peer, _) = Peer::spawn(&program, ["connect", "send-push", "null", &endpoint.to_string(), "100"]);
    connected(&mut monitor).await;
    // libzmq disconnects 15 heartbeats after one without a reply. On a busy machine a reply may
    // take as long as several of them.
    assert!(tokio::time::timeout(20 * interval, monitor.next()).await.is_err(), "the connection ended");
}

/// The number of heartbeats among the messages. libzmq disconnects 15 after one without a reply.
const PINGS: usize = 20;

/// Carries one connection and counts the heartbeats of the side that connects.
async fn count_pings(listener: TcpListener, endpoint: Endpoint, pings: Arc<AtomicUsize>) {
    let (from, to) = (listener.accept().await.unwrap().0, Raw::connect(&endpoint).await.0);
    let ((mut from, mut back), (mut replies, mut to)) = (from.into_split(), to.into_split());
    let there = async {
        let mut bytes = Vec::with_capacity(64 * 1024);
        while from.read_buf(&mut bytes).await.unwrap() > 0 {
            pings.fetch_add(bytes.windows(5).filter(|name| name == b"\x04PING").count(), Ordering::Relaxed);
            to.write_all(&bytes).await.unwrap();
            bytes.clear();
        }
    };
    let _ = tokio::join!(there, tokio::io::copy(&mut replies, &mut back));
}

/// zmq.rs had this fault: a heartbeat among messages was an error, which ended the connection again
/// and again.
///
/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_of_libzmq_that_sends_signs_of_life_among_messages_is_received_from_on_and_on() {
    let Some(program) = program() else { return };
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let ((listener, between), pings) = (listen().await, Arc::default());
    let relay = tokio::spawn(count_pings(listener, endpoint, Arc::clone(&pings)));
    let (mut peer, _) = Peer::spawn(&program, ["connect", "count-push", "null", &between, "20"]);
    connected(&mut monitor).await;
    let (mut number, mut allowed) = (0_u64, 0);
    while pings.load(Ordering::Relaxed) < PINGS {
        if number == allowed {
            allowed += 100;
            peer.write_line(&allowed.to_string());
        }
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [number.to_string()]);
        number += 1;
    }
    assert!(monitor.try_next().is_none(), "the connection ended");
    relay.abort();
}
