//! The sending half of a listening socket, which its sessions share.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Sender, kind};

/// The sending half of a socket. A clone is the same half.
#[derive(Clone)]
pub(super) struct Outbox(Arc<Mutex<Sender<kind::Router>>>);

/// The reason why a message was not sent.
pub(super) enum NotSent {
    /// The worker does not read; try again later.
    Full(Vec<Bytes>),
    /// The worker is gone, for this reason.
    Gone(String),
}

impl Outbox {
    pub(super) fn new(sender: Sender<kind::Router>) -> Self {
        Self(Arc::new(Mutex::new(sender)))
    }

    /// Sends a message to the worker of an identity, if its queue has room.
    pub(super) fn send(&self, identity: &Bytes, frames: Vec<Bytes>) -> Result<(), NotSent> {
        let mut message = Message::new();
        message.push(identity.clone());
        frames.iter().for_each(|frame| message.push(frame.clone()));
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).try_send(message) {
            Ok(()) => Ok(()),
            Err(error) if error.is_full() => Err(NotSent::Full(frames)),
            Err(error) => Err(NotSent::Gone(error.error().to_string())),
        }
    }
}
