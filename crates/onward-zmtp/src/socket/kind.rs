//! The types of sockets as types, so that a PULL has no `send`.

use crate::protocol::SocketType;

/// A type of socket. Only the types in this module are any.
pub trait Kind: sealed::Sealed + Send + 'static {
    /// Its name on the wire.
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

/// Asks, then waits for the answer: `REQ`.
#[derive(Debug)]
pub enum Req {}
/// Answers whoever asked: `REP`.
#[derive(Debug)]
pub enum Rep {}
/// Sends to its peers in turn and receives from all: `DEALER`.
#[derive(Debug)]
pub enum Dealer {}
/// Knows its peers by their identities: `ROUTER`.
#[derive(Debug)]
pub enum Router {}
/// Sends to all who are subscribed: `PUB`.
#[derive(Debug)]
pub enum Pub {}
/// A PUB that sees subscriptions: `XPUB`.
#[derive(Debug)]
pub enum Xpub {}
/// Receives what it is subscribed to: `SUB`.
#[derive(Debug)]
pub enum Sub {}
/// A SUB that sends subscriptions as messages: `XSUB`.
#[derive(Debug)]
pub enum Xsub {}
/// Sends to its peers in turn: `PUSH`.
#[derive(Debug)]
pub enum Push {}
/// Receives from all its peers: `PULL`.
#[derive(Debug)]
pub enum Pull {}
/// Talks to exactly one peer: `PAIR`.
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
