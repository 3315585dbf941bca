//! Sockets on tokio, over real streams of this machine.

mod answers;
mod cancellation;
mod dialogue;
mod events;
mod faults;
mod heartbeats;
mod identities;
mod interoperation;
mod leftovers;
mod life;
mod many;
mod pipeline;
mod proxies;
mod publishing;
mod raw;
mod reconnection;
mod security;
mod sharing;
mod storms;
mod survival;
mod transports;
