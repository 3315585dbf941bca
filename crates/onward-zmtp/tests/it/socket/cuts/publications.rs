//! Publications: who is not connected misses them, and what was on its way is lost. The rest comes once and in order.

use onward_zmtp::socket::{Overflow, SocketOptions};
use onward_zmtp::{PubSocket, SubSocket};

use super::arrived::{Connections, cut_under_load};
use super::load::{Load, SOURCES};
use super::one_way::options;
use super::wire::{Sends, Wire};

/// Publications go on after each cut without a word of the program, so the topics are subscribed to again.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_publishers_whose_connections_are_cut_what_arrives_is_in_order_and_all_that_was_passed_on() {
    let sub = SubSocket::with_options(options());
    let connections = Connections::of(&sub);
    let (mut publishers, mut wires) = (Vec::new(), Vec::new());
    for source in 0..SOURCES {
        // What is published while nobody is subscribed is not waited for.
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
