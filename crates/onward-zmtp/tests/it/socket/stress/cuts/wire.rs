//! A wire between two sockets that can be cut.

use std::sync::{Arc, Mutex};

use onward_zmtp::socket::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::load::{LABEL, read_label};
use crate::socket::support::events::within;
use crate::socket::support::raw::listen;

/// The end of a wire at which messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    WhoConnects,
    WhoIsBound,
}

/// A proxy that carries bytes between two sockets, and ends all connections on command.
pub(super) struct Wire {
    pub(super) endpoint: String,
    cut: watch::Sender<usize>,
    passages: Arc<Mutex<Vec<JoinHandle<Vec<Sent>>>>>,
}

/// A message that came to a wire whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) source: usize,
    pub(super) number: u64,
    /// True if it did not leave the wire whole.
    pub(super) is_held: bool,
}

impl Wire {
    /// Creates a wire to a bound socket. Other sockets connect to the wire.
    pub(super) async fn to(socket: Endpoint, sends: Sends) -> Self {
        let Endpoint::Tcp { host, port } = socket else { panic!("{socket} is not TCP") };
        let (listener, endpoint) = listen().await;
        let wire = Self::new(endpoint);
        let (cuts, passages) = (wire.cut.subscribe(), wire.passages.clone());
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let Ok(there) = TcpStream::connect((host.as_str(), port)).await else { return };
                let (from, to) = if sends == Sends::WhoConnects { (here, there) } else { (there, here) };
                passages.lock().unwrap().push(tokio::spawn(carry(from, to, cuts.clone())));
            }
        });
        wire
    }

    /// Creates a wire between two sockets that both connect: the sender to the wire's endpoint, the
    /// receiver to the one returned.
    pub(super) async fn between() -> (Self, String) {
        let ((from, endpoint), (to, other)) = (listen().await, listen().await);
        let wire = Self::new(endpoint);
        let (cuts, passages) = (wire.cut.subscribe(), wire.passages.clone());
        tokio::spawn(async move {
            let accept = async |listener: &TcpListener| listener.accept().await.unwrap().0;
            loop {
                let (from, to) = tokio::join!(accept(&from), accept(&to));
                passages.lock().unwrap().push(tokio::spawn(carry(from, to, cuts.clone())));
            }
        });
        (wire, other)
    }

    fn new(endpoint: String) -> Self {
        Self { endpoint, cut: watch::Sender::new(0), passages: Arc::default() }
    }

    pub(super) fn cut(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }

    /// Returns all messages that came to the wire, connection by connection. The sockets at its
    /// ends must be gone.
    pub(super) async fn sent(&self) -> Vec<Sent> {
        let passages = std::mem::take(&mut *self.passages.lock().unwrap());
        let mut sent = Vec::new();
        for passage in passages {
            sent.extend(within(passage).await.unwrap());
        }
        sent
    }
}

/// Carries bytes in both directions until the cut. Then it shuts both ends down without a reset, so
/// that everything passed on arrives and everything sent is seen.
async fn carry(from: TcpStream, to: TcpStream, mut cuts: watch::Receiver<usize>) -> Vec<Sent> {
    cuts.mark_unchanged();
    let ((mut from, mut back_to), (mut back, mut to)) = (from.into_split(), to.into_split());
    let mut passage = Passage::default();
    tokio::select! {
        _ = passage.forward(&mut from, &mut to) => {}
        _ = tokio::io::copy(&mut back, &mut back_to) => {}
        _ = cuts.changed() => {}
    }
    // An end that is gone already makes this fail, which does not matter.
    let _ = (to.shutdown().await, back_to.shutdown().await);
    let mut replies = tokio::io::sink();
    let _ = tokio::join!(from.read_to_end(&mut passage.bytes), tokio::io::copy(&mut back, &mut replies));
    passage.messages()
}

/// The bytes that were sent over a connection, and the amount that was passed on.
#[derive(Default)]
struct Passage {
    bytes: Vec<u8>,
    forwarded: usize,
}

impl Passage {
    async fn forward(&mut self, from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) -> std::io::Result<()> {
        while from.read_buf(&mut self.bytes).await? > 0 {
            while self.forwarded < self.bytes.len() {
                self.forwarded += to.write(&self.bytes[self.forwarded..]).await?;
            }
        }
        Ok(())
    }

    /// Returns the whole messages.
    fn messages(&self) -> Vec<Sent> {
        let mut messages = Vec::new();
        let (mut at, mut label) = (GREETING, None);
        while let Some((flags, body, end)) = self.frame(at) {
            at = end;
            if flags & COMMAND != 0 {
                continue;
            }
            if label.is_none() && body.len() == LABEL {
                label = Some(read_label(body));
            }
            if flags & MORE == 0
                && let Some((source, number)) = label.take()
            {
                messages.push(Sent { source, number, is_held: end > self.forwarded });
            }
        }
        messages
    }

    /// Returns the flags and the body of a frame that was sent whole, and the position of its end.
    fn frame(&self, at: usize) -> Option<(u8, &[u8], usize)> {
        let flags = *self.bytes.get(at)?;
        let (length, begin) = match flags & LONG {
            0 => (u64::from(*self.bytes.get(at + 1)?), at + 2),
            _ => (u64::from_be_bytes(self.bytes.get(at + 1..at + 9)?.try_into().unwrap()), at + 9),
        };
        let end = begin + length as usize;
        Some((flags, self.bytes.get(begin..end)?, end))
    }
}

/// The number of bytes before the first frame.
const GREETING: usize = 64;
/// The flags of a frame.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
