//! Sockets on tokio, over real streams of this machine.

mod answers;
mod backoff;
mod budget;
mod cancellation;
mod cuts;
mod dialogue;
mod dropped;
mod events;
mod faults;
mod heartbeats;
mod identities;
mod interoperation;
mod leftovers;
mod life;
mod many;
mod misuse;
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
