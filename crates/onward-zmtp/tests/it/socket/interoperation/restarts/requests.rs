//! Requests and replies.

use onward_zmtp::ReqSocket;
use onward_zmtp::socket::kind::{Rep, Req};
use tokio::task::block_in_place;

use super::site::Site;
use crate::socket::interoperation::field::Field;
use crate::socket::support::events::{disconnected, peers, within};

/// The number of requests before one side ends, and again after it.
const QUESTIONS: u64 = 100;

async fn ask(req: &mut ReqSocket, questions: u64) {
    for question in 0..questions {
        within(req.send(question.to_string())).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().frames(), [question.to_string()]);
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_is_told_that_a_rep_of_libzmq_was_killed_in_the_middle_of_a_question_and_answered_by_the_next() {
    for field in Field::few() {
        let Some(mut site) = Site::<Req>::new(field, "echo-rep").await else { return };
        ask(&mut site.socket, QUESTIONS).await;
        site.peer.kill();
        site.revive("ignore-rep");
        peers(1, || site.socket.statistics()).await;
        within(site.socket.send("nobody answers this")).await.unwrap();
        site.peer.kill();
        assert!(within(site.socket.recv()).await.unwrap_err().is_gone(), "{field:?}");
        site.revive("echo-rep");
        ask(&mut site.socket, QUESTIONS).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rep_of_libzmq_answers_the_req_that_takes_the_place_of_ours_in_the_middle_of_a_question() {
    for field in Field::few() {
        let Some(mut site) = Site::<Req>::new(field, "echo-rep").await else { return };
        ask(&mut site.socket, QUESTIONS).await;
        within(site.socket.send("nobody hears the answer")).await.unwrap();
        within(site.take().close()).await;
        site.replace().await;
        ask(&mut site.socket, QUESTIONS).await;
    }
}

/// Lets a REQ of libzmq send requests, and replies to them.
async fn answer(site: &mut Site<Rep>, questions: u64) {
    for question in 0..questions {
        let question = question.to_string();
        site.peer.write_line(&question);
        assert_eq!(within(site.socket.recv()).await.unwrap().frames(), [question.as_str()]);
        site.socket.send(format!("answer to {question}")).await.unwrap();
        assert_eq!(block_in_place(|| site.peer.line()), format!("answer to {question}"), "{:?}", site.field);
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_answers_a_req_of_libzmq_that_is_killed_in_the_middle_of_a_question_and_started_again() {
    for field in Field::few() {
        let Some(mut site) = Site::<Rep>::new(field, "number-req").await else { return };
        let mut monitor = site.socket.monitor();
        answer(&mut site, QUESTIONS).await;
        site.peer.write_line("last");
        assert_eq!(within(site.socket.recv()).await.unwrap().frames(), ["last"]);
        site.peer.kill();
        disconnected(&mut monitor).await;
        site.socket.send("nobody hears this").await.unwrap();
        assert_eq!(site.socket.statistics().dropped, 1, "{field:?}");
        site.revive("number-req");
        answer(&mut site, QUESTIONS).await;
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
        answer(&mut site, QUESTIONS).await;
        within(site.take().close()).await;
        site.replace().await;
        peers(1, || site.socket.statistics()).await;
        answer(&mut site, QUESTIONS).await;
    }
}
