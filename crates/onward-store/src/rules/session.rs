//! The bounds of sessions, and the ends of their leases.

use std::time::Duration;

use crate::api::outcome::Refusal;
use crate::api::write::OpenSession;
use crate::bounds;
use crate::rules::attempt::cut;
use crate::text::Shown;

/// Checks the registration of a worker.
///
/// # Errors
/// [`Refusal::Invalid`] for a lease shorter than [`bounds::LEASE_MINIMUM`] or longer than
/// [`bounds::LEASE_MAXIMUM`], for more than [`bounds::SERVED_NAMES`] names that it serves, and for
/// a prefix of kinds with an invisible character.
pub fn check(open: &OpenSession) -> Result<(), Refusal> {
    if open.serves.names() > bounds::SERVED_NAMES {
        return Err(Refusal::Invalid(format!(
            "the session `{}` names {} kinds and queues that it serves, and {} are allowed; serve kinds by the beginning of their names",
            Shown(&name(&open.name)),
            open.serves.names(),
            bounds::SERVED_NAMES
        )));
    }
    open.serves.check().map_err(|error| Refusal::Invalid(error.to_string()))?;
    if (bounds::LEASE_MINIMUM..=bounds::LEASE_MAXIMUM).contains(&open.lease) {
        return Ok(());
    }
    Err(Refusal::Invalid(format!(
        "the session `{}` asks for a lease of {:?}; a lease lasts from {:?} to {:?}",
        Shown(&name(&open.name)),
        open.lease,
        bounds::LEASE_MINIMUM,
        bounds::LEASE_MAXIMUM
    )))
}

/// Returns the name under which a session is stored, cut at [`bounds::NAME_BYTES`].
#[must_use]
pub fn name(name: &str) -> String {
    cut(name.to_owned(), bounds::NAME_BYTES)
}

/// Returns whether a session has lapsed: its lease is over and it holds a task. `lease_until` and
/// `now` are steady time. A session without tasks blocks no work, so an idle worker need not write
/// to stay open.
#[must_use]
pub fn has_lapsed(lease_until: Duration, holds_tasks: bool, now: Duration) -> bool {
    holds_tasks && lease_until <= now
}

/// Returns whether a session is forgotten: it holds no task, and its lease has been over for
/// [`bounds::SESSION_KEPT`]. Its process was most likely killed. A worker that was only idle
/// receives [`Refusal::SessionLost`] and opens another session.
#[must_use]
pub fn is_forgotten(lease_until: Duration, holds_tasks: bool, now: Duration) -> bool {
    !holds_tasks && lease_until.saturating_add(bounds::SESSION_KEPT) <= now
}

/// Returns whether a session may still take a task, although its lease has been over for `silent`.
///
/// A session that holds tasks has lost them. A session without tasks does not renew its lease, but
/// a live one claims a task within moments. So its process has ended if the task was claimable for
/// at least the length of a lease. After [`bounds::SESSION_KEPT`] the session is forgotten.
#[must_use]
pub fn may_take(lease: Duration, silent: Duration, holds_tasks: bool, claimable: Duration) -> bool {
    silent.is_zero() || !(holds_tasks || claimable >= lease || silent >= bounds::SESSION_KEPT)
}

/// Returns the new end of a session's lease if it is renewed at `now`. A busy worker renews with
/// every claim, so a renewal by at most a tenth of the lease is not worth a write: it returns
/// `None`.
#[must_use]
pub fn renewed_until(lease_until: Duration, lease: Duration, now: Duration) -> Option<Duration> {
    let renewed = now.saturating_add(lease);
    (renewed.saturating_sub(lease_until) > lease / 10).then_some(renewed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn a_lease_that_has_lost_a_tenth_is_not_renewed() {
        assert_eq!(renewed_until(TEN, TEN, Duration::from_secs(1)), None);
    }

    #[test]
    fn a_lease_that_has_lost_more_than_a_tenth_is_renewed_to_its_full_length() {
        assert_eq!(renewed_until(TEN, TEN, Duration::from_secs(2)), Some(Duration::from_secs(12)));
    }

    #[test]
    fn a_lease_below_the_minimum_is_refused_with_the_range() {
        let open = OpenSession::new("w", Duration::from_millis(99));
        assert!(check(&open).unwrap_err().to_string().contains("100ms"));
    }

    #[test]
    fn an_idle_session_does_not_lapse() {
        assert!(!has_lapsed(Duration::ZERO, false, Duration::MAX));
    }

    /// Shows: B6
    #[test]
    fn a_session_takes_nothing_any_more_that_has_lost_its_tasks_or_has_left_one_where_it_was() {
        let second = Duration::from_secs(1);
        assert!(may_take(TEN, Duration::ZERO, true, Duration::MAX), "its lease holds");
        assert!(!may_take(TEN, second, true, Duration::ZERO), "it has lost what it held");
        assert!(may_take(TEN, second, false, second), "it may be about to claim");
        assert!(!may_take(TEN, second, false, TEN), "it would have claimed");
        assert!(!may_take(TEN, bounds::SESSION_KEPT, false, Duration::ZERO), "it is forgotten");
    }

    #[test]
    fn an_idle_session_is_forgotten_long_after_its_lease_and_one_with_tasks_is_not() {
        let long = TEN + bounds::SESSION_KEPT;
        assert!(!is_forgotten(TEN, false, long - Duration::from_micros(1)));
        assert!(is_forgotten(TEN, false, long));
        assert!(!is_forgotten(TEN, true, Duration::MAX));
    }
}
