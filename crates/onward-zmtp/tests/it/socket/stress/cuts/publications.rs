//! Publications: a subscriber that is not connected misses them, and those on the wire are lost.
//! The rest arrives once and in order.

use onward_zmtp::socket::{Overflow, SocketOptions};
use onward_zmtp::{PubSocket, SubSocket};

use super::arrived::{Connections, cut_under_load};
use super::load::{Load, SOURCES};
use super::one_way::options;
use super::wire::{Sends, Wire};

/// Publications continue after each cut without an action of the program, so the topics are
/// subscribed to again.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_publishers_whose_connections_are_cut_what_arrives_is_in_order_and_all_that_was_passed_on() {
    let sub = SubSocket::with_options(options());
    let connections = Connections::of(&sub);
    let (mut publishers, mut wires) = (Vec::new(), Vec::new());
    for source in 0..SOURCES {
        // The option to wait does not apply while there is no subscriber.
        let publisher = PubSocket::with_options(SocketOptions::new().overflow(Overflow::Wait));
        let wire = Wire::to(publisher.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoIsBound).await;
        // Labels begin with the source.
        sub.subscribe((source as u64).to_be_bytes().to_vec()).unwrap();
        sub.connect(wire.endpoint.as_str()).unwrap();
        publishers.push(publisher);
        wires.push(wire);
    }
    let outcome = cut_under_load(sub, connections, publishers, &wires, Load::MIXED, None).await;
    outcome.print(outcome.lost);
    assert_eq!((outcome.lost, outcome.repeated, outcome.late), (0, 0, 0));
}
