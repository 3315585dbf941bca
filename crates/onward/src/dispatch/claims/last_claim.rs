//! The choice among queues, as the last claim reported it.

use onward_store::{Claimed, QueueMode, QueueTurn};

/// The order in which claimed tasks start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartOrder {
    /// The most urgent first, whenever it was claimed.
    MostUrgent,
    /// In claim order, but within a queue the most urgent first.
    FairQueues,
    /// In claim order, but queues of a greater weight first, and within a group of a queue the most
    /// urgent first.
    FairGroups,
    /// In claim order, but within a group of a queue the most urgent first.
    FairQueuesAndGroups,
}

/// The state of the last claim.
#[derive(Debug, Default)]
pub(crate) struct LastClaim {
    mode: QueueMode,
    groups_share: bool,
    turn: QueueTurn,
    /// `None` before the first claim.
    configuration: Option<u64>,
}

impl LastClaim {
    /// Returns this engine's position in the round of queues.
    pub(crate) fn turn(&self) -> QueueTurn {
        self.turn.clone()
    }

    /// Returns true if queues or groups take turns, so that a claim depends on the one before it.
    /// Before the first claim, which reports the mode, it returns true.
    pub(crate) fn is_fair(&self) -> bool {
        self.groups_share || self.mode != QueueMode::Strict || self.configuration.is_none()
    }

    /// Returns the order in which claimed tasks start.
    pub(crate) fn start_order(&self) -> StartOrder {
        match (self.groups_share, self.mode) {
            (true, QueueMode::Strict) => StartOrder::FairGroups,
            (true, _) => StartOrder::FairQueuesAndGroups,
            (false, QueueMode::Strict) => StartOrder::MostUrgent,
            (false, _) => StartOrder::FairQueues,
        }
    }

    /// Records the report of a claim. Returns true if pauses, weights, concurrencies or the mode
    /// have changed since the claim before.
    pub(crate) fn update(&mut self, claimed: &Claimed) -> bool {
        self.mode = claimed.mode;
        self.groups_share = claimed.groups_share;
        self.turn = claimed.turn.clone();
        let before = self.configuration.replace(claimed.configuration);
        before.is_some_and(|before| before != claimed.configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_claim_is_no_change_and_another_configuration_is_one() {
        let mut last_claim = LastClaim::default();
        let changed =
            [3, 3, 4].map(|configuration| last_claim.update(&Claimed { configuration, ..Claimed::default() }));
        assert_eq!(changed, [false, false, true]);
    }
}
