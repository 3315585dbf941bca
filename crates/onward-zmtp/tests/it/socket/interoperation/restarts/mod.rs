//! One side ends in the middle of a stream and is started again at the same endpoint.
//!
//! Messages are numbers, and senders wait for arrivals. The number of messages that were sent and
//! are not known to have arrived never exceeds the window. These are under way, in our queues, in
//! buffers of the operating system and in libzmq, so they may be lost. All tests assert that
//! arrivals come once and in order.

mod publications;
mod requests;
mod site;
mod streams;
