//! Publications that are numbers. What is published while nobody is subscribed is lost, and nothing once a subscriber has heard.

use onward_zmtp::SubSocket;
use onward_zmtp::socket::kind::{Pub, Sub};
use tokio::time::{Duration, interval};

use super::site::{Arrived, COUNT, Site, printed};
use crate::socket::events::{disconnected, within};
use crate::socket::interoperation::field::Field;

fn subscribe(sub: &SubSocket) {
    sub.subscribe("").unwrap();
}

/// Waits until something is heard that was counted from now on, for what was on its way before says nothing of a subscription. Then receives some more, of
/// which nothing is missing.
async fn hear(site: &mut Site<Sub>, arrived: &mut Arrived) {
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

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_subscribes_again_at_a_pub_of_libzmq_that_is_killed_and_started_again() {
    for field in Field::few() {
        let Some(mut site) = Site::<Sub>::new(field, "count-pub").await else { return };
        subscribe(&site.socket);
        let mut arrived = Arrived::default();
        hear(&mut site, &mut arrived).await;
        let mut monitor = site.socket.monitor();
        site.peer.kill();
        disconnected(&mut monitor).await;
        while let Some(message) = site.socket.try_recv() {
            arrived.note(printed(std::str::from_utf8(&message.frames()[0]).unwrap()));
        }
        site.revive("count-pub");
        hear(&mut site, &mut Arrived::default()).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pub_of_libzmq_is_heard_again_by_the_sub_that_takes_the_place_of_ours() {
    for field in Field::few() {
        let Some(mut site) = Site::<Sub>::new(field, "count-pub").await else { return };
        subscribe(&site.socket);
        let mut arrived = Arrived::default();
        hear(&mut site, &mut arrived).await;
        within(site.take().close()).await;
        subscribe(&site.socket);
        site.replace().await;
        hear(&mut site, &mut arrived).await;
    }
}

/// Publishes until something is heard that was published from now on, then some more, of which nothing is missing.
async fn be_heard(site: &mut Site<Pub>, sent: &mut u64, arrived: &mut Arrived) {
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

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pub_is_heard_again_by_a_sub_of_libzmq_that_is_killed_and_started_again() {
    for field in Field::few() {
        let Some(mut site) = Site::<Pub>::new(field, "number-sub").await else { return };
        let (mut sent, mut arrived) = (0, Arrived::default());
        be_heard(&mut site, &mut sent, &mut arrived).await;
        site.peer.kill().iter().for_each(|line| arrived.note(printed(line)));
        site.revive("number-sub");
        be_heard(&mut site, &mut sent, &mut arrived).await;
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sub_of_libzmq_subscribes_again_at_the_pub_that_takes_the_place_of_ours() {
    for field in Field::few() {
        let Some(mut site) = Site::<Pub>::new(field, "number-sub").await else { return };
        let (mut sent, mut arrived) = (0, Arrived::default());
        be_heard(&mut site, &mut sent, &mut arrived).await;
        // A libzmq that is bound takes what comes over the old connection and the new one in turns.
        while arrived.next < sent {
            arrived.note(site.printed());
        }
        within(site.take().close()).await;
        site.replace().await;
        be_heard(&mut site, &mut sent, &mut arrived).await;
    }
}
