//! Questions and answers.

use onward_zmtp::ReqSocket;
use onward_zmtp::socket::kind::{Kind, Rep, Req};
use tokio::task::block_in_place;

use super::site::Site;
use crate::socket::events::{disconnected, peers, within};
use crate::socket::interoperation::field::Field;

/// How many questions are asked before something ends, and again after it.
const QUESTIONS: u64 = 100;

/// Asks until there is an answer: the peer that was asked may be gone, and then we are told. Answers how often it was.
async fn ask(req: &mut ReqSocket, question: u64) -> u32 {
    let mut gone = 0;
    loop {
        within(req.send(question.to_string())).await.unwrap();
        match within(req.recv()).await {
            Ok(answer) => {
                assert_eq!(answer.frames(), [question.to_string()]);
                return gone;
            }
            Err(error) => assert!(error.is_gone(), "{error}"),
        }
        gone += 1;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_is_answered_by_a_rep_of_libzmq_that_is_killed_and_started_again() {
    for field in Field::few() {
        let Some(mut site) = Site::<Req>::new(field, "echo-rep").await else { return };
        for question in 0..QUESTIONS {
            assert_eq!(ask(&mut site.socket, question).await, 0, "{field:?}");
        }
        site.peer.kill();
        site.revive("echo-rep");
        let mut gone = 0;
        for question in 0..QUESTIONS {
            gone += ask(&mut site.socket, question).await;
        }
        assert!(gone <= 1, "{field:?}: {gone} questions went to somebody who is gone");
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rep_of_libzmq_answers_the_req_that_takes_the_place_of_ours_in_the_middle_of_a_question() {
    for field in Field::few() {
        let Some(mut site) = Site::<Req>::new(field, "echo-rep").await else { return };
        assert_eq!(ask(&mut site.socket, 0).await, 0, "{field:?}");
        within(site.socket.send("nobody hears the answer")).await.unwrap();
        within(site.take().close()).await;
        site.replace().await;
        for question in 0..QUESTIONS {
            assert_eq!(ask(&mut site.socket, question).await, 0, "{field:?}");
        }
    }
}

impl<T: Kind> Site<T> {
    fn their_answer(&self) -> String {
        block_in_place(|| self.peer.line())
    }
}

/// Has a REQ of libzmq ask, and answers.
async fn answer(site: &mut Site<Rep>, questions: u64) {
    for question in 0..questions {
        let question = question.to_string();
        site.peer.write_line(&question);
        assert_eq!(within(site.socket.recv()).await.unwrap().frames(), [question.clone()]);
        site.socket.send(format!("answer to {question}")).await.unwrap();
        assert_eq!(site.their_answer(), format!("answer to {question}"), "{:?}", site.field);
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

/// libzmq asks only when it is connected again: of a question that was on its way to the one before, it would wait for the answer for ever.
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
