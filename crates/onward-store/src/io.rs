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
