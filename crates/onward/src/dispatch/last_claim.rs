//! How claims choose among queues, as the last one told.

use onward_store::{Claimed, QueueMode, QueueTurn};

/// In which order claimed tasks start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartOrder {
    /// The most urgent first, whenever it was claimed.
    MostUrgent,
    /// As they were claimed, but within a queue the most urgent first.
    FairQueues,
    /// As they were claimed, but those of queues of a greater weight first, and within a group of a
    /// queue the most urgent first.
    FairGroups,
    /// As they were claimed, but within a group of a queue the most urgent first.
    FairQueuesAndGroups,
}

/// What is remembered of the last claim.
#[derive(Debug, Default)]
pub(crate) struct LastClaim {
    mode: QueueMode,
    groups_share: bool,
    turn: QueueTurn,
    /// `None` before the first claim.
    configuration: Option<u64>,
}

impl LastClaim {
    /// Where this engine's round stands.
    pub(crate) fn turn(&self) -> QueueTurn {
        self.turn.clone()
    }

    /// Whether what a claim hands out depends on whose turn it is, as it may before the first has
    /// said that.
    pub(crate) fn is_fair(&self) -> bool {
        self.groups_share || self.mode != QueueMode::Strict || self.configuration.is_none()
    }

    /// In which order what was claimed is to start.
    pub(crate) fn start_order(&self) -> StartOrder {
        match (self.groups_share, self.mode) {
            (true, QueueMode::Strict) => StartOrder::FairGroups,
            (true, _) => StartOrder::FairQueuesAndGroups,
            (false, QueueMode::Strict) => StartOrder::MostUrgent,
            (false, _) => StartOrder::FairQueues,
        }
    }

    /// Notes what a claim told; answers whether pauses, weights, concurrencies or the mode have
    /// changed since the one before.
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
