//! The sockets by their names.

use super::kind;
use super::typed::Socket;

/// `REQ`: asks one of its peers, then waits for the answer.
pub type ReqSocket = Socket<kind::Req>;
/// `REP`: answers whoever asked.
pub type RepSocket = Socket<kind::Rep>;
/// `DEALER`: sends to its peers in turn, and receives from all.
pub type DealerSocket = Socket<kind::Dealer>;
/// `ROUTER`: knows its peers by identity.
pub type RouterSocket = Socket<kind::Router>;
/// `PUB`: sends to all who are subscribed.
pub type PubSocket = Socket<kind::Pub>;
/// `XPUB`: a PUB that sees subscriptions. Receive from it: when as many notices of a peer as its mark allows wait to be received, nothing more is
/// taken from that peer, no subscription either.
pub type XpubSocket = Socket<kind::Xpub>;
/// `SUB`: receives what it is subscribed to.
pub type SubSocket = Socket<kind::Sub>;
/// `XSUB`: a SUB that sends subscriptions as messages.
pub type XsubSocket = Socket<kind::Xsub>;
/// `PUSH`: sends to its peers in turn.
pub type PushSocket = Socket<kind::Push>;
/// `PULL`: receives from all its peers.
pub type PullSocket = Socket<kind::Pull>;
/// `PAIR`: talks to exactly one peer.
pub type PairSocket = Socket<kind::Pair>;
