//! What sockets must live through. Short here; `cargo xtask soak sockets` makes it long.
//!
//! `ONWARD_ROUNDS` says how often all connections are cut while messages flow (default: 10), and how many connections there are of each
//! kind that never finish a handshake (five for each round).

use std::time::Duration;

use onward_zmtp::protocol::{Identity, Message};
use onward_zmtp::socket::{Endpoint, Monitor, MonitorEvent, Reconnect, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::events::{no_tasks, peers, until, within};
use super::raw::{Raw, accept, listen};
use crate::zmtp::link::{frame, greeting};

/// How many connections are cut at a time.
const SOURCES: usize = 4;
/// The payload of a message that is large.
const PAYLOAD: usize = 64 * 1024;
/// How many messages arrive between two cuts.
const BETWEEN_CUTS: u64 = 100;

/// A number that `cargo xtask soak` says.
fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

fn rounds() -> usize {
    number("ONWARD_ROUNDS").unwrap_or(10)
}

/// Of one source, what arrived.
#[derive(Debug, Default, Clone, Copy)]
struct Arrived {
    next: u64,
    count: u64,
    /// How often something was missing.
    gaps: usize,
    /// How often something came again, or too late.
    repeated: u64,
}

impl Arrived {
    fn note(&mut self, number: u64) {
        self.repeated += u64::from(number < self.next);
        self.gaps += usize::from(number > self.next);
        self.count += u64::from(number >= self.next);
        self.next = self.next.max(number + 1);
    }
}

/// Each source's messages arrive in their order, none twice; what is missing was on its way when its connection was cut.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_under_load_lose_only_what_was_on_its_way_and_keep_the_order() {
    let mut router = RouterSocket::new();
    let mut monitor = router.monitor();
    let wire = Wire::to(router.bind("tcp://127.0.0.1:*").await.unwrap()).await;
    let sources: Vec<_> = (0..SOURCES).map(|source| send_numbers(source, &wire.endpoint)).collect();
    let mut arrived = [Arrived::default(); SOURCES];
    let cuts = rounds().div_ceil(SOURCES);
    let mut connections = 0;
    for cut in 0..=cuts {
        receive_from_all(&mut router, &mut arrived).await;
        // What was received of the connections before may be more than that.
        while connections < SOURCES * (cut + 1) {
            note(&within(router.recv()).await.unwrap(), &mut arrived);
            connections += connections_since(&mut monitor);
        }
        if cut < cuts {
            wire.cut.send_modify(|cut| *cut += 1);
        }
    }
    sources.iter().for_each(JoinHandle::abort);
    let lost = report(&arrived, cuts, connections - SOURCES);
    assert_eq!(lost, 0, "more gaps than cuts, or messages twice: {arrived:?}");
}

/// Until from each source some more messages have come.
async fn receive_from_all(router: &mut RouterSocket, arrived: &mut [Arrived; SOURCES]) {
    let goal = arrived.map(|arrived| arrived.count + BETWEEN_CUTS);
    while arrived.iter().zip(goal).any(|(arrived, goal)| arrived.count < goal) {
        note(&within(router.recv()).await.unwrap(), arrived);
    }
}

fn note(message: &Message, arrived: &mut [Arrived; SOURCES]) {
    let [identity, number, ..] = message.frames() else { panic!("{message:?}") };
    let number = u64::from_be_bytes(number[..].try_into().unwrap());
    arrived[usize::from(identity[0] - b'a')].note(number);
}

/// How many peers have connected since this was last asked.
fn connections_since(monitor: &mut Monitor) -> usize {
    let events = std::iter::from_fn(|| monitor.try_next());
    events.filter(|event| matches!(event, MonitorEvent::Connected { .. })).count()
}

/// What the soak adds up, and how many connections came after the first of each source. Answers how many messages were lost that no cut explains, or came twice or too late.
fn report(arrived: &[Arrived], cuts: usize, reconnects: usize) -> u64 {
    let sum = |of: fn(&Arrived) -> u64| arrived.iter().map(of).sum::<u64>();
    let (sent, received, gaps) = (sum(|it| it.next), sum(|it| it.count), sum(|it| it.gaps as u64));
    let lost: u64 = arrived.iter().map(|it| it.gaps.saturating_sub(cuts) as u64).sum();
    let (underway, repeated) = (sent - received, sum(|it| it.repeated));
    println!(
        "underway={underway} gaps={gaps} attempted={sent} acknowledged={received} lost={lost} duplicated={repeated} recovered={reconnects} seed=0"
    );
    lost + repeated
}

/// Sends numbers for as long as the task is let.
fn send_numbers(source: usize, endpoint: &str) -> JoinHandle<()> {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let identity = Identity::new(vec![b'a' + source as u8]).unwrap();
    let options = SocketOptions::new().reconnect(reconnect).identity(identity);
    let mut dealer = DealerSocket::with_options(options);
    dealer.connect(endpoint).unwrap();
    tokio::spawn(async move {
        for number in 0_u64.. {
            let mut message = Message::from(number.to_be_bytes().to_vec());
            message.push(vec![0; if number % 50 == 0 { 20_000 } else { 100 }]);
            dealer.send(message).await.unwrap();
        }
    })
}

/// A peer that comes back does not get ahead of itself, although each of its connections has its turns.
///
/// Shows: M3
#[tokio::test]
async fn what_came_before_a_reconnect_is_read_before_what_comes_after_it() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut pull = PullSocket::with_options(SocketOptions::new().reconnect(reconnect));
    let (listener, endpoint) = listen().await;
    pull.connect(&endpoint).unwrap();
    let mut unread = 0;
    for connection in 0..4_u8 {
        let mut raw = accept(&listener, "PUSH").await;
        for number in 0..10 {
            raw.write(&frame(0, &[connection * 10 + number])).await;
        }
        unread += 10;
        until(|| pull.statistics().incoming.messages == unread).await;
        drop(raw);
        peers(0, || pull.statistics()).await;
        if connection == 1 {
            // Some have been read, and some not, when the next connection comes.
            for expected in 0..15 {
                assert_eq!(within(pull.recv()).await.unwrap().frames()[0], vec![expected]);
            }
            unread = pull.statistics().incoming.messages;
        }
    }
    for expected in 15..40 {
        assert_eq!(within(pull.recv()).await.unwrap().frames()[0], vec![expected]);
    }
}

/// What a lost peer did not get goes to it when it is back: first what its connection had taken, then what waited for any, then what
/// waited for this peer.
///
/// Shows: M3
#[tokio::test]
async fn what_a_lost_peer_did_not_get_keeps_its_order() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut push = PushSocket::with_options(SocketOptions::new().reconnect(reconnect));
    let (listener, endpoint) = listen().await;
    push.connect(&endpoint).unwrap();
    let mut number = 0_u32;
    // More than its connection takes at a time waits for it, and more comes when it is there, but does not read.
    send_large(&mut push, &mut number, 200).await;
    let stuck = accept(&listener, "PULL").await;
    peers(1, || push.statistics()).await;
    send_large(&mut push, &mut number, 20).await;
    drop(stuck);
    let mut raw = accept(&listener, "PULL").await;
    let mut last = None;
    while last != Some(number - 1) {
        let bytes = raw.read(9 + PAYLOAD).await;
        let found = u32::from_be_bytes(bytes[9..13].try_into().unwrap());
        assert!(last.is_none_or(|last| last < found), "{found} after {last:?}");
        last = Some(found);
    }
}

/// Sends so many more, each with its number.
async fn send_large(push: &mut PushSocket, number: &mut u32, count: usize) {
    for _ in 0..count {
        let payload = [&number.to_be_bytes()[..], &vec![0; PAYLOAD - 4]].concat();
        within(push.send(payload)).await.unwrap();
        *number += 1;
    }
}

/// Carries bytes both ways between whoever connects and a socket, and ends all connections when told to.
struct Wire {
    endpoint: String,
    cut: watch::Sender<usize>,
}

impl Wire {
    async fn to(socket: Endpoint) -> Self {
        let Endpoint::Tcp { host, port } = socket else { panic!("{socket} is not TCP") };
        let (listener, endpoint) = listen().await;
        let (cut, cuts) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect((host.as_str(), port)).await else { return };
                tokio::spawn(carry(here, there, cuts.clone()));
            }
        });
        Self { endpoint, cut }
    }
}

async fn carry(mut here: TcpStream, mut there: TcpStream, mut cuts: watch::Receiver<usize>) {
    cuts.mark_unchanged();
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
        _ = cuts.changed() => {}
    }
}

/// Beside as many that say nothing as drip one octet after the other, whoever introduces itself as usual is served.
///
/// Shows: M3
#[tokio::test]
async fn thousands_that_say_nothing_or_drip_keep_nobody_out_and_leave_nothing_behind() {
    let count = rounds() * 5;
    let mut pull = PullSocket::with_options(SocketOptions::new().pending_handshakes(count.min(1024)));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut silent = Vec::new();
    let mut dripping = Vec::new();
    let mut push = PushSocket::new();
    let greeting = greeting(1, "NULL", false);
    for octet in 0..count {
        silent.push(Raw::connect(&endpoint).await);
        dripping.push(Raw::connect(&endpoint).await);
        drip(&dripping, &greeting, octet);
        if octet == count / 2 {
            push.connect(&endpoint).unwrap();
        }
        if octet > count / 2 {
            push.send("work").await.unwrap();
            assert_eq!(within(pull.recv()).await.unwrap().frames(), ["work"]);
        }
    }
    assert_eq!(pull.statistics().peers, 1);
    let served = count - count / 2 - 1;
    println!(
        "connections={} attempted={served} acknowledged={served} lost=0 duplicated=0 recovered=0 seed=0",
        count * 2
    );
    drop((push, pull, silent, dripping));
    no_tasks().await;
}

/// One octet more from one in twenty of them, in turn. Some have been shown the door.
fn drip(all: &[Raw], greeting: &[u8], round: usize) {
    for (index, raw) in all.iter().enumerate().skip(round % 20).step_by(20) {
        let octet = (round - index) / 20;
        let _ = raw.0.try_write(&greeting[octet % greeting.len()..][..1]);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_peer_that_stops_reading_holds_up_no_other_peer_of_a_router() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut stuck = Raw::introduced(&endpoint, "DEALER").await;
    stuck.write(&frame(0, b"here I am")).await;
    let stuck_identity = within(router.recv()).await.unwrap().frames()[0].clone();
    let flood = || Message::from_iter([stuck_identity.clone(), vec![0; 64 * 1024].into()]);
    while router.try_send(flood()).is_ok() {}
    let mut dealer = DealerSocket::new();
    dealer.connect(&endpoint).unwrap();
    for _ in 0..100 {
        dealer.send("question").await.unwrap();
        let question = within(router.recv()).await.unwrap();
        within(router.send(question)).await.unwrap();
        assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["question"]);
        // It may take some more meanwhile.
        let _ = router.try_send(flood());
    }
}

/// Shows: M3
#[tokio::test]
async fn a_peer_that_stops_reading_is_passed_over_by_a_push() {
    let mut push = PushSocket::new();
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let _stuck = Raw::introduced(&endpoint, "PULL").await;
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    peers(2, || push.statistics()).await;
    // More than what waits for one peer, in its queue and on the way.
    for _ in 0..2000 {
        within(push.send(vec![0; 64 * 1024])).await.unwrap();
        while pull.try_recv().is_some() {}
    }
}

/// The other end is gone without a word in the middle of a frame, as when its process is killed; those beside it go on.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_that_is_killed_in_the_middle_of_a_message_disturbs_nobody() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut good = Raw::introduced(&endpoint, "PUSH").await;
    for round in 0..20 {
        let mut killed = Raw::introduced(&endpoint, "PUSH").await;
        let whole = frame(1, b"first").into_iter().chain(frame(0, &[7; 200])).collect::<Vec<_>>();
        killed.write(&[&frame(0, b"whole")[..], &whole[..whole.len() - 1 - round * 10]].concat()).await;
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["whole"]);
        // With a reset in place of an end.
        killed.0.set_zero_linger().unwrap();
        drop(killed);
        until(|| pull.statistics().peers == 1).await;
        good.write(&frame(0, b"good")).await;
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["good"]);
    }
    assert!(pull.try_recv().is_none());
}
