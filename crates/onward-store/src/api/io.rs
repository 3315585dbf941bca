//! How many bytes a task moves.

use serde::{Deserialize, Serialize};

/// What bytes are moved by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// Read from disk.
    DiskRead = 0,
    /// Written to disk.
    DiskWritten = 1,
    /// Received from the network.
    NetworkReceived = 2,
    /// Sent to the network.
    NetworkSent = 3,
}

impl IoKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::DiskRead, Self::DiskWritten, Self::NetworkReceived, Self::NetworkSent];

    /// As people read it.
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

/// Bytes that a task moves, by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Io {
    /// Read from disk.
    pub disk_read: u64,
    /// Written to disk.
    pub disk_written: u64,
    /// Received from the network.
    pub network_received: u64,
    /// Sent to the network.
    pub network_sent: u64,
}

impl Io {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The bytes of a kind.
    #[must_use]
    pub fn get(&self, kind: IoKind) -> u64 {
        match kind {
            IoKind::DiskRead => self.disk_read,
            IoKind::DiskWritten => self.disk_written,
            IoKind::NetworkReceived => self.network_received,
            IoKind::NetworkSent => self.network_sent,
        }
    }

    /// Sets the bytes of a kind.
    pub fn set(&mut self, kind: IoKind, bytes: u64) {
        match kind {
            IoKind::DiskRead => self.disk_read = bytes,
            IoKind::DiskWritten => self.disk_written = bytes,
            IoKind::NetworkReceived => self.network_received = bytes,
            IoKind::NetworkSent => self.network_sent = bytes,
        }
    }
}

/// What completed tasks of a kind were expected to move, and what they moved: of those that
/// [said](crate::NewTask::io) or [recorded](crate::Write::RecordIo) anything. Sums stop at the
/// greatest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoStatistics {
    /// How many tasks that was.
    pub tasks: u64,
    /// What their submitters said that an attempt would move, in all.
    pub expected: Io,
    /// What the last attempts that told it had moved, in all.
    pub recorded: Io,
}

impl IoStatistics {
    /// Whether no task said or recorded anything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.tasks == 0
    }

    /// Adds a completed task.
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
