//! libzmq in a program of C: every pair of types that go together, in every field of the matrix.

use onward_zmtp::PullSocket;
use onward_zmtp::socket::{SocketOptions, kind};

use super::traffic::{
    answer, be_answered, come_back, greet_and_send_back, hear, publish, pull, push, send_back, subscribe,
    subscribe_by_message,
};
use crate::socket::events::connected;
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
    answer(Others::libzmq(), "ask-req").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_and_a_dealer_of_libzmq() {
    answer(Others::libzmq(), "enquire-dealer").await;
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
    hear(Others::libzmq(), "publish-pub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_and_an_xpub_of_libzmq() {
    hear(Others::libzmq(), "publish-xpub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xsub_and_a_pub_of_libzmq() {
    hear(Others::libzmq(), "publish-pub", subscribe_by_message).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xsub_and_an_xpub_of_libzmq() {
    hear(Others::libzmq(), "publish-xpub", subscribe_by_message).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_with_libzmq_go_on_while_nobody_receives() {
    let Some(program) = program() else { return };
    let heartbeat = onward_zmtp::protocol::Heartbeat::every(std::time::Duration::from_millis(20));
    let pull = PullSocket::with_options(SocketOptions::new().heartbeat(heartbeat));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let (_peer, _) = Peer::spawn(&program, ["connect", "send-push", "null", &endpoint.to_string(), "20"]);
    connected(&mut monitor).await;
    // libzmq gives up 15 heartbeats after one that was not answered.
    let longer = std::time::Duration::from_millis(20 * 20);
    assert!(tokio::time::timeout(longer, monitor.next()).await.is_err(), "the connection ended");
}
