//! The network between nodes and the store: calls that are late, overtake each other, or are lost.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use onward::testing::ManualClock;
use onward_store::{
    Changes, Clock as _, Error, Hint, Notification, NotificationReceiver, NotificationSender, Outcome, Read, ReadReply,
    Result, Store, StoreDecorator, StoreFuture, Write, watch,
};
use tokio::sync::oneshot;

use super::checks::Checks;
use super::trace::Trace;

/// A message on its way. It acts when it arrives, even if its sender has crashed meanwhile.
type Message = Box<dyn FnOnce() + Send>;

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// The store never gets the request.
    RequestLost,
    /// The store acts, and the caller gets an error.
    ReplyLost,
}

/// The messages on their way, in the order of their arrival.
pub(super) struct Network {
    clock: Arc<ManualClock>,
    state: Mutex<State>,
}

struct State {
    random: fastrand::Rng,
    on_the_way: BTreeMap<(Duration, u64), Message>,
    sent: u64,
    is_faulty: bool,
    /// The number of faults left that may cost a task its lease. The third lost lease in a row
    /// makes a dead letter, so a run has at most two of these faults.
    lease_faults: u32,
}

/// The number of faults in a run that may cost a task its lease.
const LEASE_FAULTS: u32 = 2;

impl Network {
    pub(super) fn new(seed: u64, clock: Arc<ManualClock>) -> Self {
        let random = fastrand::Rng::with_seed(seed ^ 0x6e65_7477);
        let state = State { random, on_the_way: BTreeMap::new(), sent: 0, is_faulty: true, lease_faults: LEASE_FAULTS };
        Self { clock, state: Mutex::new(state) }
    }

    /// Sends a message, which arrives after a random time.
    pub(super) fn send(&self, message: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock().unwrap();
        let delay = match state.random.u32(0..100) {
            _ if !state.is_faulty => Duration::ZERO,
            0..80 => Duration::ZERO,
            80..99 => Duration::from_millis(state.random.u64(1..500)),
            // Longer than the lease allows for a renewal.
            _ if state.lease_faults > 0 => {
                state.lease_faults -= 1;
                Duration::from_secs(state.random.u64(3..15))
            }
            _ => Duration::from_millis(state.random.u64(500..2_000)),
        };
        state.sent += 1;
        let due = (self.clock.steady() + delay, state.sent);
        state.on_the_way.insert(due, Box::new(message));
    }

    /// Lets one due message arrive, a random one of the first eight. Returns false if none is due.
    pub(super) fn deliver(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let now = self.clock.steady();
        let due: Vec<_> = state.on_the_way.keys().take(8).take_while(|(due, _)| *due <= now).copied().collect();
        let Some(chosen) = state.random.choice(due) else { return false };
        let message = state.on_the_way.remove(&chosen).unwrap();
        // The message may send others.
        drop(state);
        message();
        true
    }

    /// Ends all faults. Messages on their way still arrive when they are due.
    pub(super) fn heal(&self) {
        self.state.lock().unwrap().is_faulty = false;
    }

    /// Returns whether one more fault may happen that may cost a task its lease, and counts it.
    pub(super) fn take_lease_fault(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let left = state.lease_faults;
        state.lease_faults = left.saturating_sub(1);
        left > 0
    }

    fn fate(&self, may_lose_replies: bool) -> Fate {
        let mut state = self.state.lock().unwrap();
        let roll = state.random.u32(0..1000);
        if !state.is_faulty || roll >= 20 {
            return Fate::Arrives;
        }
        if roll >= 10 || !may_lose_replies {
            return Fate::RequestLost;
        }
        drop(state);
        if self.take_lease_fault() { Fate::ReplyLost } else { Fate::RequestLost }
    }
}

/// The store, and the nodes that its commits concern.
pub(super) struct Server {
    store: Arc<dyn Store>,
    network: Arc<Network>,
    checks: Arc<Checks>,
    ends: Mutex<NotificationReceiver>,
    nodes: Mutex<BTreeMap<u32, NotificationSender>>,
    trace: Arc<Trace>,
}

impl Server {
    pub(super) fn new(store: Arc<dyn Store>, network: Arc<Network>, checks: Arc<Checks>, trace: Arc<Trace>) -> Self {
        let ends = Mutex::new(store.notifications());
        Self { store, network, checks, ends, nodes: Mutex::default(), trace }
    }

    /// Applies the writes of a node, checks the store, and notifies the nodes: the writer of each
    /// task that ended, all others of a change.
    fn apply(&self, node: u32, writes: Vec<Write>) -> Result<Vec<Outcome>> {
        self.trace(node, &writes);
        let outcomes = at_once(self.store.apply(writes))?;
        self.trace(node, &outcomes);
        while let Some(Some(notification)) = self.ends.lock().unwrap().next().now_or_never() {
            self.checks.ended(&notification);
            self.notify(node, &notification);
        }
        self.checks.limits(&*self.store);
        Ok(outcomes)
    }

    fn read(&self, node: u32, read: Read) -> Result<ReadReply> {
        self.trace(node, &read);
        let reply = at_once(self.store.read(read))?;
        self.trace(node, &reply);
        Ok(reply)
    }

    fn trace(&self, node: u32, message: &impl Debug) {
        let clock = &self.network.clock;
        self.trace.add(|| format!("{:?} {} node {node}: {message:?}", clock.steady(), clock.now()));
    }

    fn notify(&self, writer: u32, notification: &Notification) {
        for (node, sender) in &*self.nodes.lock().unwrap() {
            let sender = sender.clone();
            match notification {
                Notification::Tasks(tasks) if *node == writer => sender.notify(tasks.to_vec()),
                _ => self.network.send(move || sender.notify_missed()),
            }
        }
    }
}

/// Returns the result of a call of the store in memory, which never waits.
pub(super) fn at_once<T>(call: StoreFuture<'_, T>) -> Result<T> {
    call.now_or_never().unwrap()
}

/// A node's connection to the store.
pub(super) struct Connection {
    node: u32,
    server: Arc<Server>,
    hints: watch::Sender<Hint>,
    notifications: NotificationSender,
    /// True if replies of writes may get lost. The caller must then be able to repeat each write.
    may_lose_replies: bool,
}

impl Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the connection of node {}", self.node)
    }
}

impl Connection {
    pub(super) fn open(server: &Arc<Server>, node: u32, may_lose_replies: bool) -> Arc<Self> {
        let notifications = NotificationSender::new();
        server.nodes.lock().unwrap().insert(node, notifications.clone());
        let hints = watch::Sender::new(Hint::default());
        Arc::new(Self { node, server: Arc::clone(server), hints, notifications, may_lose_replies })
    }

    /// Passes on what the store hints at. Hints that were not passed on are lost.
    pub(super) fn hint(&self) {
        self.hints.send(self.server.store.changes().hint());
    }

    fn call<T: Send + 'static>(
        &self,
        may_lose_reply: bool,
        act: impl FnOnce(&Server) -> Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let (reply, replied) = oneshot::channel();
        let (fate, server) = (self.server.network.fate(may_lose_reply), Arc::clone(&self.server));
        self.server.network.send(move || {
            let outcome = if fate == Fate::RequestLost { Err(lost()) } else { act(&server) };
            let outcome = if fate == Fate::ReplyLost { Err(lost()) } else { outcome };
            server.network.send(move || drop(reply.send(outcome)));
        });
        Box::pin(async move { replied.await.unwrap_or_else(|_| Err(lost())) })
    }
}

fn lost() -> Error {
    Error::io("the network lost the call")
}

impl StoreDecorator for Connection {
    fn inner(&self) -> &dyn Store {
        &*self.server.store
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        let node = self.node;
        self.call(self.may_lose_replies, move |server| server.apply(node, writes))
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        let node = self.node;
        self.call(false, move |server| server.read(node, read))
    }

    fn changes(&self) -> Changes {
        Changes::new(&self.hints)
    }

    fn notifications(&self) -> NotificationReceiver {
        self.notifications.subscribe()
    }
}
