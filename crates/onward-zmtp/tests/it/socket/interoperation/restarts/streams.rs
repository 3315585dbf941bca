//! Messages that are numbers, in one direction.
//!
//! Our PAIR is restarted only where libzmq connects. A bound PAIR of libzmq that has not noticed
//! the end of its peer takes the next one as one too many. It then neither closes that connection
//! nor ever reads from it.

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::kind::{self, Receives, Sends};

use super::site::{Arrived, COUNT, Site, WINDOW, printed};
use crate::socket::interoperation::field::Field;
use crate::socket::support::events::{peers, within};

/// The most messages that a libzmq, which counts one each millisecond, sends to a peer that is
/// gone. It checks about once in that time whether a peer is connected.
const UNNOTICED: u64 = 20;
/// The number of large messages, more than the buffers of the operating system have room for.
const LARGE_COUNT: u64 = 400;
/// The payload of a large message.
const LARGE: usize = 64 * 1024;

/// Kills the sending libzmq. The messages that had not left it are missing, so at most those that
/// it was allowed to count and that had not arrived. Late arrivals may be mixed with those of the
/// next libzmq, because a bound socket cannot tell that both are the same peer.
async fn their_sender_is_killed<T: Receives>(kind: &str) {
    for field in Field::few() {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        let (mut before, mut after) = (Arrived::default(), Arrived::default());
        site.receive(&mut before, COUNT).await;
        let allowed = site.allowed;
        site.peer.kill();
        site.revive(kind);
        site.allow(COUNT);
        while after.next < COUNT {
            let number = site.number().await;
            if number < COUNT { after.note(number) } else { before.note(number) }
        }
        assert!(before.next <= allowed && allowed - COUNT <= WINDOW, "{field:?}: {before:?}");
        assert_eq!((before.missing, after.missing), (0, 0), "{field:?}");
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pull_finds_a_push_of_libzmq_again_that_is_killed_and_started_again_in_the_middle_of_a_stream() {
    their_sender_is_killed::<kind::Pull>("count-push").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_finds_a_dealer_of_libzmq_again_that_is_killed_and_started_again_in_the_middle_of_a_stream() {
    their_sender_is_killed::<kind::Router>("count-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pair_finds_a_pair_of_libzmq_again_that_is_killed_and_started_again_in_the_middle_of_a_stream() {
    their_sender_is_killed::<kind::Pair>("count-pair").await;
}

/// Drops our receiver. Missing are messages that the program had not read, and those on their way.
/// They are at most what libzmq was allowed to count, and the few that it counts before it notices.
/// After the first number has reached the new socket, none is missing.
async fn our_receiver_is_dropped<T: Receives>(fields: Vec<Field>, kind: &str) {
    for field in fields {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        let mut arrived = Arrived::default();
        site.receive(&mut arrived, COUNT).await;
        assert_eq!(arrived.missing, 0, "{field:?}");
        within(site.take().close()).await;
        site.replace().await;
        let under_way = site.allowed - arrived.next;
        arrived.note(site.number_after_all().await);
        let lost = arrived.missing;
        assert!(lost <= under_way + UNNOTICED && under_way <= WINDOW, "{field:?}: {lost} of {under_way}");
        site.receive(&mut arrived, 3 * COUNT).await;
        assert_eq!(arrived.missing, lost, "{field:?}");
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_of_libzmq_finds_us_again_when_we_start_again_in_the_middle_of_a_stream() {
    our_receiver_is_dropped::<kind::Pull>(Field::few(), "count-push").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dealer_of_libzmq_finds_us_again_when_we_start_again_in_the_middle_of_a_stream() {
    our_receiver_is_dropped::<kind::Router>(Field::few(), "count-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pair_of_libzmq_that_connects_finds_us_again_when_we_start_again_in_the_middle_of_a_stream() {
    our_receiver_is_dropped::<kind::Pair>(Field::few_that_we_bind(), "count-pair").await;
}

/// Kills the receiving libzmq. Each accepted number is printed by the killed one, or waits in our
/// queue and is printed by the next one. The exceptions are numbers that our socket had passed on
/// and the killed one had not printed: those counted as dropped, those in the operating system, and
/// those that the killed one had read. These are at most the window.
async fn their_receiver_is_killed<T: Sends>(kind: &str) {
    for field in Field::few() {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        let mut monitor = site.socket.monitor();
        let (mut sent, mut arrived) = (0, Arrived::default());
        site.send(&mut sent, &mut arrived, COUNT).await;
        assert_eq!(arrived.missing, 0, "{field:?}");
        site.peer.kill().iter().for_each(|line| arrived.note(printed(line)));
        let waiting = site.waiting(&mut monitor).await;
        let lost = sent - arrived.next - waiting;
        let dropped = site.socket.statistics().dropped;
        assert!(dropped <= lost && lost <= WINDOW, "{field:?}: {lost}, of which {dropped} were being written");
        site.revive(kind);
        site.send_until(&mut sent, arrived.next + lost + waiting + COUNT).await;
        while arrived.next < sent {
            arrived.note(site.printed());
            assert_eq!(arrived.missing, lost, "{field:?}");
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_of_libzmq_that_is_killed_and_started_again_misses_only_what_was_under_way() {
    their_receiver_is_killed::<kind::Push>("pull").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_of_libzmq_that_is_killed_and_started_again_misses_only_what_was_under_way() {
    their_receiver_is_killed::<kind::Dealer>("router").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pair_of_libzmq_that_is_killed_and_started_again_misses_only_what_was_under_way() {
    their_receiver_is_killed::<kind::Pair>("number-pair").await;
}

/// The killed libzmq had little room, so most messages wait in our queue. All of them go to the
/// next one.
///
/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waited_for_a_libzmq_that_received_nothing_and_was_killed_goes_to_the_next_one() {
    for field in Field::few() {
        let Some(mut site) = Site::<kind::Push>::new(field, "ignore-pull").await else { return };
        let mut monitor = site.socket.monitor();
        peers(1, || site.socket.statistics()).await;
        for number in 0..LARGE_COUNT {
            let message = Message::from_iter([number.to_string().into_bytes(), vec![b'.'; LARGE]]);
            within(site.socket.send(message)).await.unwrap();
        }
        site.peer.kill();
        let waiting = site.waiting(&mut monitor).await;
        assert!(waiting > 0, "{field:?}");
        site.revive("pull");
        for number in LARGE_COUNT - waiting..LARGE_COUNT {
            assert_eq!(site.printed(), number, "{field:?}");
        }
    }
}

/// Receives the messages of two sockets of ours, which overlap: the first may still send when the
/// second begins.
fn expect_all_of_both<T: Sends>(site: &Site<T>) {
    let (mut first, mut second) = (Arrived::default(), Arrived::from(COUNT));
    for _ in 0..2 * COUNT {
        let number = site.printed();
        if number < COUNT { first.note(number) } else { second.note(number) }
    }
    assert_eq!((first.missing, second.missing), (0, 0), "{:?}", site.field);
}

/// Drops our sender. No message may be missing, because a socket lingers.
async fn our_sender_is_dropped<T: Sends>(fields: Vec<Field>, kind: &str) {
    for field in fields {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        let mut sent = 0;
        site.send_until(&mut sent, COUNT).await;
        drop(site.take());
        site.replace().await;
        site.send_until(&mut sent, 2 * COUNT).await;
        expect_all_of_both(&site);
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_of_libzmq_misses_nothing_when_our_push_is_dropped_and_another_takes_its_place() {
    our_sender_is_dropped::<kind::Push>(Field::few(), "pull").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_of_libzmq_misses_nothing_when_our_dealer_is_dropped_and_another_takes_its_place() {
    our_sender_is_dropped::<kind::Dealer>(Field::few(), "router").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pair_of_libzmq_that_connects_misses_nothing_when_ours_is_dropped_and_another_takes_its_place() {
    our_sender_is_dropped::<kind::Pair>(Field::few_that_we_bind(), "number-pair").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_is_closed_says_that_all_was_sent_and_libzmq_has_it() {
    for field in Field::few() {
        let Some(mut site) = Site::<kind::Push>::new(field, "pull").await else { return };
        let mut sent = 0;
        site.send_until(&mut sent, COUNT).await;
        assert_eq!(within(site.take().close()).await, 0, "{field:?}");
        site.replace().await;
        site.send_until(&mut sent, 2 * COUNT).await;
        expect_all_of_both(&site);
    }
}
