//! How claims choose among queues, as the last one told.

use onward_store::{Claimed, QueueMode, QueueTurn};

/// What is remembered of the last claim.
#[derive(Debug, Default)]
pub(crate) struct Choosing {
    mode: QueueMode,
    turn: QueueTurn,
    /// `None` before the first claim.
    configuration: Option<u64>,
}

impl Choosing {
    /// Where this engine's round stands.
    pub(crate) fn turn(&self) -> QueueTurn {
        self.turn.clone()
    }

    /// Whether queues take turns, so that what was claimed is to start in the order in which it came.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.mode != QueueMode::Strict
    }

    /// Notes what a claim told; answers whether pauses, weights, concurrencies or the mode have changed since the one before.
    pub(crate) fn learn(&mut self, claimed: &Claimed) -> bool {
        self.mode = claimed.mode;
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
        let mut choosing = Choosing::default();
        let changed = [3, 3, 4].map(|configuration| choosing.learn(&Claimed { configuration, ..Claimed::default() }));
        assert_eq!(changed, [false, false, true]);
    }
}
