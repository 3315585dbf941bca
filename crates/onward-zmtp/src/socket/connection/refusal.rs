//! The decision whether a peer refuses a socket for good.

use crate::socket::bounds::UNANSWERED_HANDSHAKES;
use crate::socket::error::Error;
use crate::socket::options::policies::RefusalPolicy;

/// The refusals that one connector has seen from its peer.
pub(super) struct Refusals {
    policy: RefusalPolicy,
    /// The number of times in a row that the server closed the connection during the handshake
    /// without a reason.
    unanswered: u32,
}

impl Refusals {
    pub(super) fn new(policy: RefusalPolicy) -> Self {
        Self { policy, unanswered: 0 }
    }

    /// Records a failed attempt. Returns true if the connector must give up.
    pub(super) fn is_final(&mut self, error: &Error) -> bool {
        let is_unanswered = error.protocol().is_some_and(crate::protocol::Error::is_unanswered);
        self.unanswered = if is_unanswered { self.unanswered.saturating_add(1) } else { 0 };
        // A refusal on our side is not final: a PAIR that has a peer already may have room later.
        self.policy == RefusalPolicy::GiveUp && (error.is_refusal_of_peer() || self.unanswered >= UNANSWERED_HANDSHAKES)
    }

    /// Records an established connection.
    pub(super) fn was_accepted(&mut self) {
        self.unanswered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;

    fn unanswered() -> Error {
        protocol::Error::unanswered().into()
    }

    #[test]
    fn a_server_that_closes_without_a_word_once_or_twice_may_just_have_ended() {
        let mut refusals = Refusals::new(RefusalPolicy::GiveUp);
        for _ in 0..10 {
            assert!((1..UNANSWERED_HANDSHAKES).all(|_| !refusals.is_final(&unanswered())));
            assert!(!refusals.is_final(&protocol::Error::timeout("slow").into()));
        }
        assert!((1..UNANSWERED_HANDSHAKES).all(|_| !refusals.is_final(&unanswered())));
        assert!(refusals.is_final(&unanswered()));
    }

    #[test]
    fn a_socket_that_is_to_try_again_never_gives_up() {
        let mut refusals = Refusals::new(RefusalPolicy::Retry);
        assert!(!refusals.is_final(&protocol::Error::peer_error("400").into()));
        assert!((0..10 * UNANSWERED_HANDSHAKES).all(|_| !refusals.is_final(&unanswered())));
    }
}
