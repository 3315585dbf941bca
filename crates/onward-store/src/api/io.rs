//! Counts of the bytes that a task moves.

use serde::{Deserialize, Serialize};

/// A direction in which a task moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// Bytes read from disk.
    DiskRead = 0,
    /// Bytes written to disk.
    DiskWritten = 1,
    /// Bytes received from the network.
    NetworkReceived = 2,
    /// Bytes sent to the network.
    NetworkSent = 3,
}

impl IoKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::DiskRead, Self::DiskWritten, Self::NetworkReceived, Self::NetworkSent];

    /// Returns the name of the kind for people, such as `disk read`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DiskRead => "disk read",
            Self::DiskWritten => "disk written",
            Self::NetworkReceived => "network received",
            Self::NetworkSent => "network sent",
        }
    }
}

/// The number of bytes that a task moves, for each [`IoKind`]. Each count is 0 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Io {
    /// Bytes read from disk.
    pub disk_read: u64,
    /// Bytes written to disk.
    pub disk_written: u64,
    /// Bytes received from the network.
    pub network_received: u64,
    /// Bytes sent to the network.
    pub network_sent: u64,
}

impl Io {
    /// Returns whether all counts are 0.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the count of one kind, in bytes.
    #[must_use]
    pub fn get(&self, kind: IoKind) -> u64 {
        match kind {
            IoKind::DiskRead => self.disk_read,
            IoKind::DiskWritten => self.disk_written,
            IoKind::NetworkReceived => self.network_received,
            IoKind::NetworkSent => self.network_sent,
        }
    }

    /// Sets the count of one kind, in bytes.
    pub fn set(&mut self, kind: IoKind, bytes: u64) {
        match kind {
            IoKind::DiskRead => self.disk_read = bytes,
            IoKind::DiskWritten => self.disk_written = bytes,
            IoKind::NetworkReceived => self.network_received = bytes,
            IoKind::NetworkSent => self.network_sent = bytes,
        }
    }
}

/// Expected and recorded bytes of the completed tasks of one kind.
///
/// Only tasks that [expected](crate::NewTask::io) or [recorded](crate::Write::RecordIo) bytes are
/// counted. A batch is counted instead of its items. Sums saturate at the largest `u64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoStatistics {
    /// The number of tasks counted.
    pub tasks: u64,
    /// The sum of the bytes that one attempt of each task was expected to move.
    pub expected: Io,
    /// The sum of the bytes that each task recorded last.
    pub recorded: Io,
}

impl IoStatistics {
    /// Returns whether no task is counted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.tasks == 0
    }

    /// Adds a completed task. Ignores a task that neither expected nor recorded bytes.
    pub fn count(&mut self, expected: Io, recorded: Option<Io>) {
        if expected.is_none() && recorded.is_none() {
            return;
        }
        self.tasks += 1;
        let recorded = recorded.unwrap_or_default();
        for kind in IoKind::ALL {
            self.expected.set(kind, self.expected.get(kind).saturating_add(expected.get(kind)));
            self.recorded.set(kind, self.recorded.get(kind).saturating_add(recorded.get(kind)));
        }
    }
}
