//! Either side ends in the middle of a stream and is started again where it was.
//!
//! Messages are numbers, and senders wait for what arrives: of what was sent and is not known to have arrived there are never more than the
//! window. That is what is under way, in queues of ours, in buffers of the operating system and in libzmq, and so what may be lost. All tests
//! assert that what arrives does so once and in order.

mod dialogues;
mod publications;
mod site;
mod streams;
