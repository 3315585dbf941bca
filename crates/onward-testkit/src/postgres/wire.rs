//! A network connection that can be cut: a port that forwards to another port.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A forwarder from a port of its own to another port, until it is cut. A cut stops traffic in both
/// directions and for new connections, and neither side is notified. It is closed when it is
/// dropped.
#[derive(Debug)]
pub struct Wire {
    state: Arc<State>,
    address: SocketAddr,
}

#[derive(Debug, Default)]
struct State {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    is_cut: bool,
    is_closed: bool,
    /// Both ends of each connection, by connection number.
    connections: HashMap<u64, [TcpStream; 2]>,
    last: u64,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the wire is cut. Returns `false` if it has been closed.
    fn pass(&self) -> bool {
        let waited = self.changed.wait_while(self.lock(), |now| now.is_cut && !now.is_closed);
        !waited.unwrap_or_else(PoisonError::into_inner).is_closed
    }

    fn add(&self, ends: [TcpStream; 2]) -> u64 {
        let mut now = self.lock();
        now.last += 1;
        let number = now.last;
        now.connections.insert(number, ends);
        number
    }

    /// Shuts a connection down on both sides.
    fn end(&self, number: u64) {
        if let Some(ends) = self.lock().connections.remove(&number) {
            ends.iter().for_each(end);
        }
    }
}

/// Shuts a stream down. Ignores an error, because the stream may already have ended.
fn end(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

impl Wire {
    /// Starts a forwarder to a port of 127.0.0.1.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(State::default());
        let theirs = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, port, &theirs));
        Self { state, address }
    }

    /// Returns the port of this end.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Stops all traffic from now on, without notifying either side.
    pub fn cut(&self) {
        self.state.lock().is_cut = true;
    }

    /// Lets traffic through again, including what was on its way.
    pub fn heal(&self) {
        self.state.lock().is_cut = false;
        self.state.changed.notify_all();
    }

    /// Lets traffic through again, but ends the open connections. Both sides see the end, and what
    /// was on its way is lost.
    pub fn heal_again(&self) {
        let connections = std::mem::take(&mut self.state.lock().connections);
        connections.values().flatten().for_each(end);
        self.heal();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.state.lock().is_closed = true;
        self.heal_again();
        // A connection wakes the accepting thread, so that it sees that the wire is closed.
        let _ = TcpStream::connect(self.address);
    }
}

fn accept(listener: &TcpListener, port: u16, state: &Arc<State>) {
    for near in listener.incoming() {
        if state.lock().is_closed {
            return;
        }
        let Ok(near) = near else { continue };
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            // An error ends the connection, and the client sees that.
            let _ = carry(near, port, &state);
        });
    }
}

fn carry(near: TcpStream, port: u16, state: &Arc<State>) -> std::io::Result<()> {
    if !state.pass() {
        return Ok(());
    }
    let far = TcpStream::connect(("127.0.0.1", port))?;
    let number = state.add([near.try_clone()?, far.try_clone()?]);
    let (back_from, back_to, theirs) = (far.try_clone()?, near.try_clone()?, Arc::clone(state));
    let back = std::thread::spawn(move || pump(back_from, back_to, &theirs));
    pump(near, far, state);
    state.end(number);
    let _ = back.join();
    Ok(())
}

/// Forwards data from one stream to the other until one of them ends.
fn pump(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
        && state.pass()
        && to.write_all(&buffer[..length]).is_ok()
    {}
    end(&from);
    end(&to);
}
