//! Every bound of the protocol.

/// The largest header, in bytes.
pub const HEADER_BYTES: usize = 65_536;

/// The largest depth of arrays and objects in a header.
pub const HEADER_DEPTH: usize = 64;

/// The largest number of payloads of a message.
pub const PAYLOADS: usize = 1024;

/// The largest payload, unless `welcome` names another bound.
pub const PAYLOAD_BYTES: usize = 1 << 20;

/// The bound for the payloads of a message together. One payload of any allowed size may exceed it.
pub const MESSAGE_PAYLOAD_BYTES: usize = 16 << 20;

/// The largest number of entries of a list in a header.
pub const ENTRIES: usize = 1024;

/// The longest kind, queue or other name, in bytes.
pub const NAME_BYTES: usize = 128;

/// The largest number of versions in a `hello`.
pub const VERSIONS: usize = 16;

/// The largest number of features in a `hello`.
pub const FEATURES: usize = 64;

/// The largest number of slots of a worker, and of tasks of one kind that it may hold.
pub const SLOTS: u32 = 65_536;

/// The longest secret in a `hello`, in bytes.
pub const KEY_BYTES: usize = 512;

/// The longest message of a failure, in bytes.
pub const FAILURE_BYTES: usize = 8192;

/// The longest details of a failure as JSON, in bytes.
pub const DETAILS_BYTES: usize = 4096;

/// The longest message of a progress, in bytes.
pub const PROGRESS_BYTES: usize = 1024;

/// The longest text and remedy of an `error`, in bytes.
pub const ERROR_BYTES: usize = 1024;

/// The longest key of a submitted task, in bytes.
pub const UNIQUE_KEY_BYTES: usize = 512;

/// The largest number of tags of a submitted task.
pub const TAGS: usize = 32;

/// The longest wait of an `ask` for a result, in milliseconds.
pub const ASK_WAIT_MS: u64 = 60_000;

/// The largest number of decisions of one turn.
pub const DECISIONS: usize = 20_000;

/// The largest integer that every language reads exactly: 53 bits.
pub const INTEGER: u64 = (1 << 53) - 1;
