//! Refused credentials, counted, so that a burst of them leaves one line and one record.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::http::bounds;

/// The refused credentials of the present period.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Period>);

#[derive(Debug, Default)]
struct Period {
    began: Option<Duration>,
    counted: u64,
}

impl Refusals {
    /// Counts a refused credential. Returns the number since the last report if it is the first
    /// within [`bounds::REFUSALS_COUNTED`], so that the caller reports it.
    pub(crate) fn count(&self, now: Duration) -> Option<u64> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        period.counted += 1;
        if period.began.is_some_and(|began| now < began.saturating_add(bounds::REFUSALS_COUNTED)) {
            return None;
        }
        period.began = Some(now);
        Some(std::mem::take(&mut period.counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_reported_once_and_counted() {
        let refusals = Refusals::default();
        let at = Duration::from_secs;
        assert_eq!(refusals.count(at(1)), Some(1));
        assert_eq!((refusals.count(at(2)), refusals.count(at(3))), (None, None));
        assert_eq!(refusals.count(at(11)), Some(3));
    }
}
