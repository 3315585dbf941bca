//! Several servers on one store, killed, stopped and restarted under load. Clients send each
//! request again, to any server, until it succeeds.

#![expect(clippy::panic, reason = "a test that cannot go on should say where")]
#![expect(clippy::disallowed_methods, reason = "the limits of the test are in real time")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use onward_testkit::soak::{self, Tally};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::Sandbox;
use crate::serve::Serving;
use crate::stores::on_every_store;

on_every_store! {
    servers_that_are_killed_stopped_and_restarted_lose_and_double_nothing,
}

/// The number of servers.
const SERVERS: usize = 3;

/// The number of clients at once.
const CLIENTS: u64 = 6;

/// The time after which a client tries another server.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time within which a request must succeed at some server.
const LIMIT: Duration = Duration::from_secs(60);

/// The faults of a round, in turn.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A server is killed, and another started.
    Kill,
    /// A server stands still for longer than the clients wait.
    Pause,
    /// All servers are stopped in order, one after the other, and others started.
    Restart,
}

/// The servers and the numbers that the clients share.
struct Cluster {
    addresses: Mutex<Vec<String>>,
    key: String,
    stop: AtomicBool,
    /// The number of attempts, of which some failed and were repeated.
    attempts: AtomicU64,
}

impl Cluster {
    fn addresses(&self) -> MutexGuard<'_, Vec<String>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to one server after the other until one carries it out. Panics if a server
    /// returns anything that a client cannot repeat.
    fn request(&self, random: &mut fastrand::Rng, head: &str, body: &str) -> Value {
        let begun = Instant::now();
        loop {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            let address = {
                let addresses = self.addresses();
                addresses[random.usize(..addresses.len())].clone()
            };
            match self.try_request(&address, head, body) {
                Some((200 | 201, reply)) => return reply,
                // The server stops, or its store is not there for a moment.
                Some((503, _)) | None => thread::yield_now(),
                Some((status, reply)) => panic!("{head}: {status} {reply}"),
            }
            assert!(begun.elapsed() < LIMIT, "{head} did not succeed at any server");
        }
    }

    /// Returns the status and the body; `None` without a whole response.
    fn try_request(&self, address: &str, head: &str, body: &str) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect_timeout(&address.parse().ok()?, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let (key, length) = (&self.key, body.len());
        let request = format!(
            "{head}host: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        let (head, body) = response.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).ok()?))
    }

    /// Submits tasks until the end, and reads each of them back from any server. Returns the ids by
    /// their payloads.
    fn submit_and_read(&self, client: u64, seed: u64) -> Vec<(String, String)> {
        let mut random = fastrand::Rng::with_seed(seed ^ client);
        let mut acknowledged = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let payload = format!("{client}-{}", acknowledged.len());
            let head = format!("POST /v1/tasks HTTP/1.1\r\nidempotency-key: {payload}\r\n");
            let task = json!({"kind": "k", "payload": payload}).to_string();
            let id = self.request(&mut random, &head, &task)["id"].as_str().unwrap().to_owned();
            let read = self.request(&mut random, &format!("GET /v1/tasks/{id}?payloads=true HTTP/1.1\r\n"), "");
            assert_eq!(read["payload"]["json"], payload);
            acknowledged.push((payload, id));
        }
        acknowledged
    }

    /// Returns the payloads of all tasks by their ids.
    fn stored(&self) -> BTreeMap<String, String> {
        let (mut random, mut cursor, mut stored) = (fastrand::Rng::with_seed(0), String::new(), BTreeMap::new());
        loop {
            let head = format!("GET /v1/tasks?kind=k&payloads=true&limit=1000{cursor} HTTP/1.1\r\n");
            let page = self.request(&mut random, &head, "");
            for task in page["items"].as_array().unwrap() {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                stored.insert(text(&task["id"]), text(&task["payload"]["json"]));
            }
            let Some(next) = page["next"].as_str() else { return stored };
            cursor = format!("&cursor={next}");
        }
    }

    /// Replaces a server.
    fn replace(&self, sandbox: &Sandbox, servers: &mut [Serving], index: usize, signal: Signal) {
        servers[index].signal(signal);
        let old = std::mem::replace(&mut servers[index], Serving::start(sandbox));
        let address = servers[index].address().to_owned();
        self.addresses()[index] = address;
        let code = old.wait();
        assert!(signal == Signal::KILL || code == Some(0), "a server stopped with {code:?}");
    }

    fn inject(&self, sandbox: &Sandbox, servers: &mut [Serving], index: usize, fault: Fault) {
        match fault {
            Fault::Kill => self.replace(sandbox, servers, index, Signal::KILL),
            Fault::Pause => {
                servers[index].signal(Signal::STOP);
                let before = self.attempts.load(Ordering::Relaxed);
                let begun = Instant::now();
                // The clients notice it, and go on at the others.
                while begun.elapsed() < PATIENCE || self.attempts.load(Ordering::Relaxed) < before + CLIENTS {
                    thread::yield_now();
                    assert!(begun.elapsed() < LIMIT, "no client goes on while a server stands still");
                }
                servers[index].signal(Signal::CONT);
            }
            Fault::Restart => {
                (0..servers.len()).for_each(|index| self.replace(sandbox, servers, index, Signal::TERM));
            }
        }
    }
}

/// Shows: W8
#[expect(clippy::print_stdout, reason = "the summary that `cargo xtask soak` adds up")]
fn servers_that_are_killed_stopped_and_restarted_lose_and_double_nothing(sandbox: Sandbox) {
    let (seed, rounds) = (soak::seed(), soak::number("ONWARD_ROUNDS").unwrap_or(3));
    let created = sandbox.json(&["key", "create", "cluster", "--role", "operator"]).remove(0);
    let mut servers: Vec<Serving> = (0..SERVERS).map(|_| Serving::start(&sandbox)).collect();
    let cluster = Cluster {
        addresses: Mutex::new(servers.iter().map(|server| server.address().to_owned()).collect()),
        key: created["key"].as_str().unwrap().to_owned(),
        stop: AtomicBool::new(false),
        attempts: AtomicU64::new(0),
    };
    let mut random = fastrand::Rng::with_seed(seed);
    let acknowledged: Vec<(String, String)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| (client, &cluster))
            .map(|(client, cluster)| scope.spawn(move || cluster.submit_and_read(client, seed)))
            .collect();
        // The clients end too if a round fails.
        let faults = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..rounds {
                let fault = [Fault::Kill, Fault::Pause, Fault::Restart][usize::try_from(round % 3).unwrap()];
                cluster.inject(&sandbox, &mut servers, random.usize(..SERVERS), fault);
            }
        }));
        cluster.stop.store(true, Ordering::Relaxed);
        let acknowledged = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        faults.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        acknowledged
    });
    let stored = cluster.stored();
    let lost = acknowledged.iter().filter(|(payload, id)| stored.get(id) != Some(payload)).count() as u64;
    let duplicated = (stored.len() - stored.values().collect::<std::collections::BTreeSet<_>>().len()) as u64;
    let tally = Tally {
        attempted: cluster.attempts.load(Ordering::Relaxed),
        acknowledged: acknowledged.len() as u64,
        lost,
        duplicated,
        recovered: rounds,
        seed,
    };
    println!("{tally}");
    assert_eq!((lost, duplicated, stored.len()), (0, 0, acknowledged.len()), "{tally}");
    assert!(acknowledged.len() as u64 > CLIENTS, "{tally}");
    assert!(servers.into_iter().all(|server| server.stop() == Some(0)));
}
