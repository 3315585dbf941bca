//! The names of the socket types.

use super::kind;
use super::typed_socket::Socket;

/// `REQ`: sends a request to one of its peers, then waits for the reply.
pub type ReqSocket = Socket<kind::Req>;
/// `REP`: receives requests and sends each reply to the peer that made the request.
pub type RepSocket = Socket<kind::Rep>;
/// `DEALER`: sends to its peers in turn, and receives from all.
pub type DealerSocket = Socket<kind::Dealer>;
/// `ROUTER`: addresses its peers by identity.
pub type RouterSocket = Socket<kind::Router>;
/// `PUB`: sends to all subscribers.
pub type PubSocket = Socket<kind::Pub>;
/// `XPUB`: a PUB that receives subscriptions as messages. The program must receive them: once the
/// unread notices of a peer reach the high-water mark, nothing more is read from that peer, not
/// even subscriptions.
pub type XpubSocket = Socket<kind::Xpub>;
/// `SUB`: receives the messages that it is subscribed to.
pub type SubSocket = Socket<kind::Sub>;
/// `XSUB`: a SUB that sends subscriptions as messages.
pub type XsubSocket = Socket<kind::Xsub>;
/// `PUSH`: sends to its peers in turn.
pub type PushSocket = Socket<kind::Push>;
/// `PULL`: receives from all its peers.
pub type PullSocket = Socket<kind::Pull>;
/// `PAIR`: exchanges messages with exactly one peer.
pub type PairSocket = Socket<kind::Pair>;
