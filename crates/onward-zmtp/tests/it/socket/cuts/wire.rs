//! What is between two sockets, and can be cut.

use std::sync::{Arc, Mutex};

use onward_zmtp::socket::Endpoint;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::load::{LABEL, read_label};
use crate::socket::events::within;
use crate::socket::raw::listen;

/// At which end of a wire messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    WhoConnects,
    WhoIsBound,
}

/// Carries bytes between two sockets, and ends all connections when told to.
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
    /// Whether it did not leave it whole.
    pub(super) is_held: bool,
}

impl Wire {
    /// To a socket that is bound. Others connect to the wire.
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

    /// Between two sockets which both connect: one that sends, to the endpoint of the wire, and one that receives, to the other that is answered.
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

    /// All that came to it, over one connection after the other. Everybody at its ends must be gone.
    pub(super) async fn sent(&self) -> Vec<Sent> {
        let passages = std::mem::take(&mut *self.passages.lock().unwrap());
        let mut sent = Vec::new();
        for passage in passages {
            sent.extend(within(passage).await.unwrap());
        }
        sent
    }
}

/// Carries bytes both ways until the cut. Then each end is told that there is no more, without a reset, so that all that was passed on arrives, and all that
/// was sent is seen.
async fn carry(from: TcpStream, to: TcpStream, mut cuts: watch::Receiver<usize>) -> Vec<Sent> {
    cuts.mark_unchanged();
    let ((mut from, mut back_to), (mut back, mut to)) = (from.into_split(), to.into_split());
    let mut passage = Passage::default();
    tokio::select! {
        _ = passage.forward(&mut from, &mut to) => {}
        _ = tokio::io::copy(&mut back, &mut back_to) => {}
        _ = cuts.changed() => {}
    }
    // Whoever is gone already needs not be told.
    let _ = (to.shutdown().await, back_to.shutdown().await);
    let mut answers = tokio::io::sink();
    let _ = tokio::join!(from.read_to_end(&mut passage.bytes), tokio::io::copy(&mut back, &mut answers));
    passage.messages()
}

/// What was sent over a connection, and how much of it was passed on.
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

    /// The whole messages.
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

    /// The flags and the body of a frame that was sent whole, and where it ends.
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

/// How many bytes are sent before the first frame.
const GREETING: usize = 64;
/// Flags of a frame.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
