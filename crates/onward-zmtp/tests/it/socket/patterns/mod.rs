//! The socket types and what they send to whom.

mod batches;
mod blocking;
mod conflation;
mod direct_replies;
mod halves;
mod hello;
mod manual_subscriptions;
mod pipeline;
mod proxies;
mod publishing;
mod request_reply;
mod routing;
