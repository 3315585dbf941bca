//! A network that can be cut: a port that leads to another.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Carries connections from a port of its own to another, until it is cut: then nothing comes
/// through, in neither direction and for no new connection, and nobody is told. Closed when it is
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
    /// Both ends of each connection, by number.
    connections: HashMap<u64, [TcpStream; 2]>,
    last: u64,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the wire is cut; `false` if it has been closed.
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

    /// Ends a connection on both sides.
    fn end(&self, number: u64) {
        if let Some(ends) = self.lock().connections.remove(&number) {
            ends.iter().for_each(end);
        }
    }
}

/// One that has ended already is as good.
fn end(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

impl Wire {
    /// To a port of 127.0.0.1.
    ///
    /// # Panics
    /// If there is no port to be had.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(State::default());
        let theirs = Arc::clone(&state);
        std::thread::spawn(move || accept(&listener, port, &theirs));
        Self { state, address }
    }

    /// The port at this end.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Nothing comes through from now on, and nobody is told.
    pub fn cut(&self) {
        self.state.lock().is_cut = true;
    }

    /// What was on its way comes through, and all that follows.
    pub fn heal(&self) {
        self.state.lock().is_cut = false;
        self.state.changed.notify_all();
    }

    /// Mended, but what was connected is so no longer: each side hears of it, and what was on its
    /// way is gone.
    pub fn heal_anew(&self) {
        let connections = std::mem::take(&mut self.state.lock().connections);
        connections.values().flatten().for_each(end);
        self.heal();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.state.lock().is_closed = true;
        self.heal_anew();
        // The one who accepts looks up.
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
            // Who is not served hears that the connection is over.
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

/// Carries what comes from one to the other until one of them ends.
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
