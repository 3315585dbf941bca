//! The bounds of a client.

use std::time::Duration;

/// The longest time to connect, with TLS.
pub const CONNECT: Duration = Duration::from_secs(10);

/// The default of [`ClientBuilder::timeout`](crate::ClientBuilder::timeout).
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The default of [`ClientBuilder::retry_for`](crate::ClientBuilder::retry_for).
pub const RETRY_FOR: Duration = Duration::from_secs(30);

/// The longest time for which one request asks the server to wait.
pub const WAIT: Duration = Duration::from_secs(30);

/// The longest time without a byte on an event stream. The server sends one every 15 s.
pub const QUIET: Duration = Duration::from_secs(45);

/// The first pause between two attempts. Each is up to twice as long as the one before.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between two attempts that the client chooses itself.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The largest number of idle connections that are kept.
pub const IDLE_CONNECTIONS: usize = 16;

/// The largest body of a response.
pub const RESPONSE_BYTES: usize = 256 * 1024 * 1024;

/// The largest body of a response with a problem.
pub const PROBLEM_BYTES: usize = 1024 * 1024;

/// The largest message of an event stream.
pub const MESSAGE_BYTES: usize = 1024 * 1024;

/// The largest key file.
pub const KEY_FILE_BYTES: u64 = 4096;
