//! The gateway of workers in any language.
//!
//! A worker connects, names the kinds that it handles, and gives credit. The gateway runs an engine
//! for it, which claims tasks of those kinds within the credit, and whose handlers pass each task
//! to the worker and wait for its end. Limits, retries, fairness and leases are therefore the
//! engine's own.
//!
//! [`Gateway::serve_stream`] serves a worker on a stream, such as a socket that a child process has
//! inherited; [`Listener`] serves workers that connect over ipc and tcp.
//!
//! The private module `session` decides and does no I/O, `worker` carries out its decisions, and
//! `carriers` has the streams and the listening socket.
//!
//! # Credit
//!
//! A worker grants the total number of tasks that may be sent on its connection. The session sets
//! the budget of the engine to the tasks that the engine has passed to it plus the rest of the
//! credit. The engine claims no task beyond its budget, so a worker without room holds no task back
//! from other workers.
//!
//! # The end of a worker
//!
//! A task has two leases. In the store the session of the engine holds it, and this process renews
//! that lease. Between the gateway and the worker, each message of the worker extends
//! [`GatewayOptions::lease`]. A worker that dies is noticed in one of these ways:
//!
//! - A stream of its own closes. Its attempts end as crashed at once.
//! - On a listening socket a lost connection leaves the session open: the worker may connect again
//!   and continue it, until it has been silent for the lease.
//! - It hangs, or its machine is cut off. Its attempts end as crashed when it has been silent for
//!   the lease.
//!
//! The engine writes the end of each crashed attempt, and the retry policy of the task decides
//! about the next one. If the gateway itself dies, the lease in the store is not renewed, and
//! another process claims the tasks when it has passed. The fence of the new claim then refuses a
//! late end of the old attempt.

pub mod bounds;
mod carriers;
mod options;
mod session;
mod worker;

pub use carriers::{ListenError, Listener};
pub use options::{Ended, Gateway, GatewayOptions};
pub use worker::history_json;
