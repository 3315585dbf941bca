//! Many peers that are refused before the program is asked, and one that is accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onward_zmtp::protocol::{Options, Security, SocketType};
use onward_zmtp::socket::{Decision, Endpoint, MonitorEvent, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};

use crate::socket::support::events::{peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::allocations::counted;
use crate::zmtp::link::mechanisms;
use crate::zmtp::pitfalls::{false_hellos, said_until_decision};

/// The number of peers that flood at a time. Each reconnects as soon as it is refused.
const FLOODERS: usize = 16;

/// The number of refusals of each until a good peer that connects among them has sent its first
/// message.
const TURNS: usize = 8;

/// Returns the two sides of CURVE.
fn sides() -> (Security, Security) {
    let (_, client, server) = mechanisms().remove(2);
    (client, server)
}

/// Returns a server and the number of times that the program was asked about a peer.
async fn server() -> (PullSocket, Endpoint, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let options = SocketOptions::new().security(sides().1).authenticate_with(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Decision::Accept }
    });
    let pull = PullSocket::with_options(options);
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    (pull, endpoint, asked)
}

fn all_false_hellos() -> Vec<Vec<u8>> {
    let (client, server) = sides();
    false_hellos(&said_until_decision(client, &Arc::new(Options::new(SocketType::Pull).security(server))))
}

/// Sends the bytes and waits for the refusal.
async fn visit(endpoint: &Endpoint, said: &[u8]) {
    let mut raw = Raw::connect(endpoint).await;
    raw.write(said).await;
    raw.read_to_end().await;
}

/// Floods until the test ends. Returns a function that counts the refusals so far.
fn flood(endpoint: &Endpoint) -> impl Fn() -> usize {
    let refused = Arc::new(AtomicUsize::new(0));
    let hellos = Arc::new(all_false_hellos());
    for number in 0..FLOODERS {
        let (endpoint, refused, hellos) = (endpoint.clone(), refused.clone(), hellos.clone());
        tokio::spawn(async move {
            loop {
                visit(&endpoint, &hellos[number % hellos.len()]).await;
                refused.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    move || refused.load(Ordering::Relaxed)
}

/// The wait is measured in refusals, not in time.
///
/// Shows: M3
#[tokio::test]
async fn a_flood_of_false_hellos_does_not_keep_a_good_peer_waiting() {
    let (mut pull, endpoint, asked) = server().await;
    let refused = flood(&endpoint);
    until(|| refused() >= 2 * FLOODERS).await;
    let mut push = PushSocket::with_options(SocketOptions::new().security(sides().0));
    let (mut monitor, before) = (push.monitor(), refused());
    push.connect(&endpoint).unwrap();
    within(push.send("good")).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["good"]);
    let meanwhile = refused() - before;
    assert!(meanwhile <= TURNS * FLOODERS, "{meanwhile} were refused before");
    let event = monitor.try_next();
    assert!(matches!(event, Some(MonitorEvent::Connected { .. })), "{event:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn those_who_were_refused_for_a_false_hello_leave_no_memory_and_no_task() {
    const VISITS: usize = 50;
    const ROUNDS: usize = 3;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (pull, endpoint, asked) = runtime.block_on(server());
    let hellos = all_false_hellos();
    let visits = |count: usize| {
        runtime.block_on(async {
            for _ in 0..count {
                for hello in &hellos {
                    visit(&endpoint, hello).await;
                }
            }
            // The one task left is the listener.
            until(|| tokio::runtime::Handle::current().metrics().num_alive_tasks() == 1).await;
            peers(0, || pull.statistics()).await;
        });
    };
    visits(VISITS / 10);
    // A queue of the runtime may grow once, on a busy machine later than in the first visits. A
    // visit that leaves memory does so in every round.
    let kept = (0..ROUNDS).map(|_| counted(|| visits(VISITS)).live).min().unwrap();
    assert!(kept < VISITS as i64, "{kept} bytes are kept");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    runtime.block_on(async { drop(pull) });
}
