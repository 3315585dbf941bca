//! Requests and replies.

use onward_zmtp::ReqSocket;
use onward_zmtp::socket::kind::{Rep, Req};
use tokio::task::block_in_place;

use super::site::Site;
use crate::socket::interoperation::field::Field;
use crate::socket::support::events::{disconnected, peers, within};

/// The number of requests before one side ends, and again after it.
const REQUESTS: u64 = 100;

async fn ask(req: &mut ReqSocket, requests: u64) {
    for request in 0..requests {
        within(req.send(request.to_string())).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().frames(), [request.to_string()]);
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_reports_a_rep_of_libzmq_killed_within_a_request_and_the_next_replies() {
    for field in Field::few() {
        let Some(mut site) = Site::<Req>::new(field, "echo-rep").await else { return };
        ask(&mut site.socket, REQUESTS).await;
        site.peer.kill();
        site.revive("ignore-rep");
        peers(1, || site.socket.statistics()).await;
        within(site.socket.send("without a reply")).await.unwrap();
        site.peer.kill();
        assert!(within(site.socket.recv()).await.unwrap_err().is_gone(), "{field:?}");
        site.revive("echo-rep");
        ask(&mut site.socket, REQUESTS).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rep_of_libzmq_replies_to_the_req_that_takes_the_place_of_ours_in_the_middle_of_a_request() {
    for field in Field::few() {
        let Some(mut site) = Site::<Req>::new(field, "echo-rep").await else { return };
        ask(&mut site.socket, REQUESTS).await;
        within(site.socket.send("the reply is lost")).await.unwrap();
        within(site.take().close()).await;
        site.replace().await;
        ask(&mut site.socket, REQUESTS).await;
    }
}

/// Lets a REQ of libzmq send requests, and replies to them.
async fn reply(site: &mut Site<Rep>, requests: u64) {
    for request in 0..requests {
        let request = request.to_string();
        site.peer.write_line(&request);
        assert_eq!(within(site.socket.recv()).await.unwrap().frames(), [request.as_str()]);
        site.socket.send(format!("reply to {request}")).await.unwrap();
        assert_eq!(block_in_place(|| site.peer.line()), format!("reply to {request}"), "{:?}", site.field);
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_replies_to_a_req_of_libzmq_that_is_killed_in_the_middle_of_a_request_and_started_again() {
    for field in Field::few() {
        let Some(mut site) = Site::<Rep>::new(field, "number-req").await else { return };
        let mut monitor = site.socket.monitor();
        reply(&mut site, REQUESTS).await;
        site.peer.write_line("last");
        assert_eq!(within(site.socket.recv()).await.unwrap().frames(), ["last"]);
        site.peer.kill();
        disconnected(&mut monitor).await;
        site.socket.send("nobody hears this").await.unwrap();
        assert_eq!(site.socket.statistics().dropped, 1, "{field:?}");
        site.revive("number-req");
        reply(&mut site, REQUESTS).await;
    }
}

/// libzmq sends requests only when it is connected again. It would wait for ever for the reply to a
/// request that was on its way to the previous socket.
///
/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_req_of_libzmq_is_answered_by_the_rep_that_takes_the_place_of_ours() {
    for field in Field::few() {
        let Some(mut site) = Site::<Rep>::new(field, "number-req").await else { return };
        reply(&mut site, REQUESTS).await;
        within(site.take().close()).await;
        site.replace().await;
        peers(1, || site.socket.statistics()).await;
        reply(&mut site, REQUESTS).await;
    }
}
