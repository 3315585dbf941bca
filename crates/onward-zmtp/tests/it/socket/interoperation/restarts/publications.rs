//! Publications that are numbers. A number published without a subscriber is lost; none is lost
//! after the first arrival.

use onward_zmtp::Socket;
use onward_zmtp::socket::kind::{Pub, Receives, Sends, Sub, Xpub, Xsub};
use tokio::time::{Duration, interval};

use super::site::{Arrived, COUNT, Site, printed};
use crate::socket::interoperation::field::Field;
use crate::socket::support::events::{disconnected, within};

fn subscribe(sub: &mut Socket<Sub>) {
    sub.subscribe("").unwrap();
}

/// Subscribes to everything, by a message.
fn subscribe_upstream(xsub: &mut Socket<Xsub>) {
    xsub.try_send(&b"\x01"[..]).unwrap();
}

/// Waits for a number that is counted from now on, because earlier ones prove no new subscription.
/// Then receives some more, none of which may be missing.
async fn receive_published<T: Receives>(site: &mut Site<T>, arrived: &mut Arrived) {
    let counted = site.allowed;
    within(async {
        while arrived.next <= counted {
            arrived.note(site.number_after_all().await);
        }
    })
    .await;
    let (missing, end) = (arrived.missing, arrived.next + COUNT);
    site.receive(arrived, end).await;
    assert_eq!(arrived.missing, missing, "{:?}", site.field);
}

async fn their_publisher_is_killed<T: Receives>(kind: &str, subscribe: fn(&mut Socket<T>)) {
    for field in Field::few() {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        subscribe(&mut site.socket);
        let mut arrived = Arrived::default();
        receive_published(&mut site, &mut arrived).await;
        let mut monitor = site.socket.monitor();
        site.peer.kill();
        disconnected(&mut monitor).await;
        while let Some(message) = site.socket.try_recv() {
            arrived.note(printed(std::str::from_utf8(&message.frames()[0]).unwrap()));
        }
        site.revive(kind);
        receive_published(&mut site, &mut Arrived::default()).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_subscribes_again_at_a_pub_of_libzmq_that_is_killed_and_started_again() {
    their_publisher_is_killed("count-pub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xsub_subscribes_again_at_an_xpub_of_libzmq_that_is_killed_and_started_again() {
    their_publisher_is_killed("count-xpub", subscribe_upstream).await;
}

async fn our_subscriber_is_dropped<T: Receives>(kind: &str, subscribe: fn(&mut Socket<T>)) {
    for field in Field::few() {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        subscribe(&mut site.socket);
        let mut arrived = Arrived::default();
        receive_published(&mut site, &mut arrived).await;
        within(site.take().close()).await;
        subscribe(&mut site.socket);
        site.replace().await;
        receive_published(&mut site, &mut arrived).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_that_replaces_ours_receives_from_a_pub_of_libzmq_again() {
    our_subscriber_is_dropped("count-pub", subscribe).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_xsub_that_replaces_ours_receives_from_an_xpub_of_libzmq_again() {
    our_subscriber_is_dropped("count-xpub", subscribe_upstream).await;
}

/// Publishes until a number published from now on arrives. Then publishes some more, none of which
/// may be missing.
async fn be_received<T: Sends>(site: &mut Site<T>, sent: &mut u64, arrived: &mut Arrived) {
    let (before, mut ticks) = (*sent, interval(Duration::from_millis(1)));
    within(async {
        while arrived.next <= before {
            site.peer.try_line().iter().for_each(|line| arrived.note(printed(line)));
            let end = *sent + 1;
            site.send_until(sent, end).await;
            ticks.tick().await;
        }
    })
    .await;
    let (missing, end) = (arrived.missing, arrived.next + COUNT);
    site.send(sent, arrived, end).await;
    assert_eq!(arrived.missing, missing, "{:?}", site.field);
}

async fn their_subscriber_is_killed<T: Sends>(kind: &str) {
    for field in Field::few() {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        let (mut sent, mut arrived) = (0, Arrived::default());
        be_received(&mut site, &mut sent, &mut arrived).await;
        site.peer.kill().iter().for_each(|line| arrived.note(printed(line)));
        site.revive(kind);
        be_received(&mut site, &mut sent, &mut arrived).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_sub_of_libzmq_receives_from_our_pub_again() {
    their_subscriber_is_killed::<Pub>("number-sub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_xsub_of_libzmq_receives_from_our_xpub_again() {
    their_subscriber_is_killed::<Xpub>("number-xsub").await;
}

async fn our_publisher_is_dropped<T: Sends>(kind: &str) {
    for field in Field::few() {
        let Some(mut site) = Site::<T>::new(field, kind).await else { return };
        let (mut sent, mut arrived) = (0, Arrived::default());
        be_received(&mut site, &mut sent, &mut arrived).await;
        // A bound libzmq reads the old connection and the new one in turn.
        while arrived.next < sent {
            arrived.note(site.printed());
        }
        within(site.take().close()).await;
        site.replace().await;
        be_received(&mut site, &mut sent, &mut arrived).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_of_libzmq_subscribes_again_at_the_pub_that_takes_the_place_of_ours() {
    our_publisher_is_dropped::<Pub>("number-sub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_xsub_of_libzmq_subscribes_again_at_the_xpub_that_takes_the_place_of_ours() {
    our_publisher_is_dropped::<Xpub>("number-xsub").await;
}
