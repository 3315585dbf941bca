//! The socket types as Rust types, so that a PULL has no `send`.

use crate::protocol::SocketType;

/// A socket type. Only the types in this module implement it.
pub trait Kind: sealed::Sealed + Send + 'static {
    /// The name of the type on the wire.
    const TYPE: SocketType;
}

/// A socket that receives messages at any time.
pub trait Receives: Kind {}

/// A socket that sends messages at any time.
pub trait Sends: Kind {}

/// A socket that receives what it is subscribed to.
pub trait Subscribes: Kind {}

mod sealed {
    pub trait Sealed {}
}

/// `REQ`: sends a request, then waits for the reply.
#[derive(Debug)]
pub enum Req {}
/// `REP`: receives requests and sends each reply to the peer that made the request.
#[derive(Debug)]
pub enum Rep {}
/// `DEALER`: sends to its peers in turn and receives from all.
#[derive(Debug)]
pub enum Dealer {}
/// `ROUTER`: addresses its peers by identity.
#[derive(Debug)]
pub enum Router {}
/// `PUB`: sends to all subscribers.
#[derive(Debug)]
pub enum Pub {}
/// `XPUB`: a PUB that receives subscriptions as messages.
#[derive(Debug)]
pub enum Xpub {}
/// `SUB`: receives the messages that it is subscribed to.
#[derive(Debug)]
pub enum Sub {}
/// `XSUB`: a SUB that sends subscriptions as messages.
#[derive(Debug)]
pub enum Xsub {}
/// `PUSH`: sends to its peers in turn.
#[derive(Debug)]
pub enum Push {}
/// `PULL`: receives from all its peers.
#[derive(Debug)]
pub enum Pull {}
/// `PAIR`: exchanges messages with exactly one peer.
#[derive(Debug)]
pub enum Pair {}

macro_rules! kinds {
    ($($kind:ident: $($role:ident)*;)*) => {$(
        impl sealed::Sealed for $kind {}
        impl Kind for $kind {
            const TYPE: SocketType = SocketType::$kind;
        }
        $(impl $role for $kind {})*
    )*};
}

kinds! {
    Req: ;
    Rep: ;
    Dealer: Sends Receives;
    Router: Sends Receives;
    Pub: Sends;
    Xpub: Sends Receives;
    Sub: Receives Subscribes;
    Xsub: Sends Receives Subscribes;
    Push: Sends;
    Pull: Receives;
    Pair: Sends Receives;
}
