//! The number of connections, in all and for each client address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// A connection that is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    /// Counts a connection. Returns `None` if there are too many in all, or more than
    /// `per_address` from the address.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr, all: usize, per_address: usize) -> Option<Connection> {
        let mut counts = self.counts();
        let count = counts.by_address.get(&address).copied().unwrap_or(0);
        if counts.all >= all || count >= per_address {
            return None;
        }
        counts.all += 1;
        counts.by_address.insert(address, count + 1);
        Some(Connection { connections: Arc::clone(self), address })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut counts = self.connections.counts();
        counts.all = counts.all.saturating_sub(1);
        match counts.by_address.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.by_address.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_too_many_connections_leaves_room_for_others() {
        let connections = Arc::new(Connections::default());
        let (one, other) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let mut open: Vec<_> = (0..8).map(|_| connections.open(one, 10, 8).expect("there is room")).collect();
        assert!(connections.open(one, 10, 8).is_none());
        let _of_other = connections.open(other, 10, 8).expect("there is room");
        open.pop();
        assert!(connections.open(one, 10, 8).is_some());
        assert!(connections.open(one, 8, 10).is_none(), "eight are open in all");
    }
}
