//! Crowds of connections that never finish a handshake: their cost, and the service for other
//! peers.
//!
//! The other ends are in a second process, which runs this program again. By default there are a
//! thousand connections for a second, half of which send twenty octets a second, one at a time.
//! `ONWARD_CONNECTIONS` sets the number of connections, as `cargo xtask soak sockets` does; then
//! they send an octet a second, for a minute.

use std::cell::Cell;
use std::future::pending;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use onward_zmtp::socket::{Endpoint, SocketOptions, bounds};
use onward_zmtp::{PullSocket, PushSocket};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};

use crate::socket::support::events::{no_tasks, number, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::allocations::{Counted, counted};
use crate::zmtp::link::greeting;

/// The default number of connections.
const CONNECTIONS: usize = 1000;
/// The number of octets that each slow connection sends. It is less than a greeting has.
const OCTETS: usize = 60;
const OCTETS_IN_SHORT: usize = 20;
/// The time from one octet to the next.
const DRIP: Duration = Duration::from_secs(1);
const DRIP_IN_SHORT: Duration = Duration::from_millis(50);
/// The memory that one connection may cost this process, in bytes.
const BYTES_OF_A_STRANGER: i64 = 6 * 1024;
/// The memory allowed for everything else, in bytes: the sockets that are served, and the runtime.
const BYTES_BESIDE: i64 = 512 * 1024;
/// The time from one message to the next, and the number of messages for each one from a new peer.
const SERVE: Duration = Duration::from_millis(10);
const NEW_ONE_IN: usize = 50;
/// The time limit for the crowd to connect and to send.
const LONG: Duration = Duration::from_secs(600);
/// The line that the process prints when all are connected, and the one that precedes the number of
/// octets taken.
const ALL_HERE: &str = "all here";
const DRIPPED: &str = "dripped ";

/// Half of the connections send nothing and half send one octet at a time. A peer with a normal
/// handshake is still served. The oldest connections are closed.
///
/// Shows: M3
#[test]
fn thousands_of_silent_or_slow_peers_keep_no_peer_out_and_leave_nothing_behind() {
    affect_no_other_peer(bounds::PENDING_HANDSHAKES.min(Plan::from_environment().connections / 4));
}

/// A peer with a normal handshake is also served if all of the connections may stay.
///
/// Shows: M3
#[test]
fn thousands_of_silent_or_slow_peers_that_stay_connected_keep_no_peer_out_and_leave_nothing_behind() {
    affect_no_other_peer(usize::MAX);
}

fn affect_no_other_peer(places: usize) {
    // Each test takes as many files as there may be, so they run one at a time.
    static FILES: Mutex<()> = Mutex::new(());
    let _files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = Plan::from_environment();
    allow_files(plan.connections);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The other ends are in another process, so only the cost of these ends is counted.
    let Counted { result: (octets, served), peak, live, .. } = counted(|| runtime.block_on(plan.carry_out(places)));
    let staying = plan.connections.min(places);
    println!(
        "connections={} staying={staying} octets={octets} bytes_each={} attempted={served} acknowledged={served} lost=0 duplicated=0 recovered=0 seed=0",
        plan.connections,
        peak / staying as i64,
    );
    if staying == plan.connections {
        assert_eq!(octets, plan.connections / 2 * plan.octets, "some that drip were sent away");
    }
    assert!(peak <= staying as i64 * BYTES_OF_A_STRANGER + BYTES_BESIDE, "{peak} bytes for {staying} connections");
    assert!(live <= BYTES_BESIDE, "{live} bytes are kept");
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    connections: usize,
    octets: usize,
    drip: Duration,
}

impl Plan {
    fn from_environment() -> Self {
        match number("ONWARD_CONNECTIONS") {
            Some(connections) => Self { connections, octets: OCTETS, drip: DRIP },
            None => Self { connections: CONNECTIONS, octets: OCTETS_IN_SHORT, drip: DRIP_IN_SHORT },
        }
    }

    /// Starts the crowd and serves other peers until it has sent everything; then all connections
    /// end. Returns the number of octets taken and of messages received.
    async fn carry_out(self, places: usize) -> (usize, usize) {
        let options = SocketOptions::new().pending_handshakes(places).handshake_timeout(LONG);
        let mut pull = PullSocket::with_options(options);
        let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
        let mut crowd = Crowd::start(&endpoint);
        crowd.read_report(ALL_HERE).await;
        let metrics = tokio::runtime::Handle::current().metrics();
        // The listener, and one task for each connection that is still there.
        let tasks = 1 + self.connections.min(places);
        until(|| metrics.num_alive_tasks() == tasks).await;
        let is_over = Cell::new(false);
        let dripping = async {
            let octets = crowd.read_report(DRIPPED).await;
            is_over.set(true);
            octets.parse().unwrap()
        };
        let (octets, served) = tokio::join!(dripping, serve(&mut pull, &endpoint, &is_over));
        drop((pull, crowd));
        no_tasks().await;
        (octets, served)
    }
}

/// Sends and receives now and then, from a peer that connected before the crowd and from new ones.
/// Returns the number of messages.
async fn serve(pull: &mut PullSocket, endpoint: &Endpoint, is_over: &Cell<bool>) -> usize {
    let mut known = PushSocket::new();
    known.connect(endpoint).unwrap();
    let (mut served, mut ticks) = (0, interval(SERVE));
    while !is_over.get() {
        ticks.tick().await;
        if served % NEW_ONE_IN == 0 {
            let mut new = PushSocket::new();
            new.connect(endpoint).unwrap();
            new.send("new").await.unwrap();
            assert_eq!(within(pull.recv()).await.unwrap().frames(), ["new"]);
        } else {
            known.send("known").await.unwrap();
            assert_eq!(within(pull.recv()).await.unwrap().frames(), ["known"]);
        }
        served += 1;
    }
    served
}

/// A process that connects. It is killed on drop.
struct Crowd {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Crowd {
    fn start(endpoint: &Endpoint) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["socket::stress::crowds::crowd", "--exact", "--ignored", "--nocapture"]);
        command.env("ONWARD_CROWD_AT", endpoint.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, lines }
    }

    /// Waits for the next line that begins with `begin` and returns the rest of it.
    async fn read_report(&mut self, begin: &str) -> String {
        let said = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the crowd is there");
                if let Some(rest) = line.strip_prefix(begin) {
                    return rest.to_owned();
                }
            }
        };
        timeout(LONG, said).await.expect("the crowd comes in time")
    }
}

/// The work of that process.
#[tokio::test]
#[ignore = "it is a process of the tests here, started by them"]
async fn crowd() {
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    let plan = Plan::from_environment();
    allow_files(plan.connections);
    let endpoint = std::env::var("ONWARD_CROWD_AT").expect("the test says where").parse().unwrap();
    let (mut silent, mut dripping) = (Vec::new(), Vec::new());
    for _ in 0..plan.connections / 2 {
        silent.push(Raw::connect(&endpoint).await);
        dripping.push(Raw::connect(&endpoint).await);
    }
    println!("\n{ALL_HERE}");
    let (mut octets, mut ticks) = (0, interval(plan.drip));
    for octet in &greeting(1, "NULL", false)[..plan.octets] {
        ticks.tick().await;
        octets += dripping.iter().filter(|raw| raw.0.try_write(&[*octet]).is_ok()).count();
    }
    println!("{DRIPPED}{octets}");
    pending().await
}

/// Raises the limit of open files of this process to the most that the system allows.
fn allow_files(connections: usize) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let is_enough = maximum.is_none_or(|maximum| maximum > connections as u64 + 500);
    assert!(is_enough, "{connections} connections need a larger `ulimit -Hn`");
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
