//! Failed sign-ins, and the lock-outs that they cause.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::http::bounds;

/// The failed sign-ins of accounts and addresses, in the memory of this server.
///
/// A sign-in counts as failed before its password is checked, so that many at once are no way
/// around the limit. Names are counted whether or not there is such an account.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<Subject, Failures>>);

/// The subject of a limit: an account at an address, or an address with any account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    account: Option<String>,
    address: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    began: Duration,
    count: u32,
    /// The number of lock-outs so far.
    locks: u32,
    locked_until: Duration,
}

/// A sign-in that was counted.
#[derive(Debug)]
pub(in crate::http::access) struct Attempt([Subject; 2]);

impl Attempts {
    /// Counts a sign-in. Returns the rest of the lock-out if there is one.
    pub(in crate::http::access) fn begin(
        &self,
        account: &str,
        address: Option<IpAddr>,
        now: Duration,
    ) -> Result<Attempt, Duration> {
        let address = address.map(network);
        let subjects = [Subject { account: Some(account.to_owned()), address }, Subject { account: None, address }];
        let mut attempts = self.attempts();
        for subject in &subjects {
            if let Some(rest) = attempts.get(subject).and_then(|it| it.locked_until.checked_sub(now))
                && !rest.is_zero()
            {
                return Err(rest);
            }
        }
        for subject in &subjects {
            let limit = if subject.account.is_some() { bounds::ATTEMPTS } else { bounds::ATTEMPTS_PER_ADDRESS };
            make_room(&mut attempts, subject, now);
            attempts.entry(subject.clone()).or_default().count(limit, now);
        }
        Ok(Attempt(subjects))
    }

    /// Notes that the password was right: the account is not locked out at this address.
    pub(in crate::http::access) fn note_success(&self, attempt: &Attempt) {
        let mut attempts = self.attempts();
        let [account, address] = &attempt.0;
        attempts.remove(account);
        // An account of the attacker must not clear what it did to other accounts.
        if let Some(failures) = attempts.get_mut(address) {
            failures.undo();
        }
    }

    /// Notes that no password was compared.
    pub(in crate::http::access) fn note_nothing(&self, attempt: &Attempt) {
        let mut attempts = self.attempts();
        for subject in &attempt.0 {
            if let Some(failures) = attempts.get_mut(subject) {
                failures.undo();
            }
        }
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<Subject, Failures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failures {
    /// Counts a failure. The last one that the limit allows begins a lock-out.
    fn count(&mut self, limit: u32, now: Duration) {
        if self.is_forgotten(now) {
            *self = Self { began: now, ..Self::default() };
        } else if now >= self.began.saturating_add(bounds::ATTEMPTS_TIME) {
            (self.began, self.count) = (now, 0);
        }
        self.count += 1;
        if self.count == limit {
            let factor = 2_u32.saturating_pow(self.locks);
            let time = bounds::ATTEMPTS_TIME.saturating_mul(factor).min(bounds::LOCK_OUT);
            self.locked_until = now.saturating_add(time);
            self.locks += 1;
            (self.began, self.count) = (self.locked_until, 0);
        }
    }

    fn undo(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Returns true if the last failure and the last lock-out are long over.
    fn is_forgotten(&self, now: Duration) -> bool {
        now >= self.began.max(self.locked_until).saturating_add(bounds::LOCK_OUT)
    }
}

/// Makes room for a subject: forgets those whose failures are long over, or else the oldest.
fn make_room(attempts: &mut HashMap<Subject, Failures>, subject: &Subject, now: Duration) {
    if attempts.len() < bounds::ATTEMPTS_REMEMBERED || attempts.contains_key(subject) {
        return;
    }
    attempts.retain(|_, failures| !failures.is_forgotten(now));
    if attempts.len() >= bounds::ATTEMPTS_REMEMBERED {
        let oldest = attempts.iter().min_by_key(|(_, failures)| failures.began.max(failures.locked_until));
        if let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) {
            attempts.remove(&oldest);
        }
    }
}

/// Returns the address that stands for all of one client: of IPv6 a client has the last 64 bits for
/// itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn from(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    fn fail(attempts: &Attempts, times: u32, now: Duration) {
        for _ in 0..times {
            attempts.begin("ada", from(1), now).expect("it is not locked out");
        }
    }

    #[test]
    fn each_lock_out_is_twice_as_long_as_the_one_before() {
        let attempts = Attempts::default();
        fail(&attempts, 10, at(0));
        assert_eq!(attempts.begin("ada", from(1), at(20)).expect_err("it is locked out"), at(40));
        fail(&attempts, 10, at(60));
        assert_eq!(attempts.begin("ada", from(1), at(60)).expect_err("it is locked out"), at(120));
        fail(&attempts, 10, at(180));
        assert_eq!(attempts.begin("ada", from(1), at(180)).expect_err("it is locked out"), at(240));
    }

    #[test]
    fn a_lock_out_is_of_one_account_at_one_address() {
        let attempts = Attempts::default();
        fail(&attempts, 10, at(0));
        attempts.begin("ada", from(2), at(0)).expect("it is another address");
        attempts.begin("bob", from(1), at(0)).expect("it is another account");
    }

    #[test]
    fn failures_in_different_minutes_do_not_add_up() {
        let attempts = Attempts::default();
        fail(&attempts, 9, at(0));
        fail(&attempts, 9, at(60));
        attempts.begin("ada", from(1), at(120)).expect("it is not locked out");
    }

    #[test]
    fn a_success_forgets_the_failures_of_the_account() {
        let attempts = Attempts::default();
        fail(&attempts, 9, at(0));
        let right = attempts.begin("ada", from(1), at(1)).expect("it is not locked out");
        attempts.note_success(&right);
        fail(&attempts, 9, at(2));
    }

    #[test]
    fn an_address_that_tries_many_accounts_is_locked_out() {
        let attempts = Attempts::default();
        for number in 0..bounds::ATTEMPTS_PER_ADDRESS {
            attempts.begin(&format!("user{number}"), from(1), at(0)).expect("it is not locked out");
        }
        assert_eq!(attempts.begin("another", from(1), at(0)).expect_err("it is locked out"), at(60));
        attempts.begin("another", from(2), at(0)).expect("it is another address");
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let attempts = Attempts::default();
        for last in 0..bounds::ATTEMPTS {
            let address: IpAddr = format!("2001:db8::{last:x}").parse().expect("an address");
            attempts.begin("ada", Some(address), at(0)).expect("it is not locked out");
        }
        let same = Some("2001:db8::ffff".parse().expect("an address"));
        assert!(attempts.begin("ada", same, at(0)).is_err());
        let other = Some("2001:db8:0:1::1".parse().expect("an address"));
        assert!(attempts.begin("ada", other, at(0)).is_ok());
    }

    #[test]
    fn the_number_that_is_remembered_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..bounds::ATTEMPTS_REMEMBERED {
            let address = IpAddr::from(u32::try_from(number).expect("a small number").to_be_bytes());
            attempts.begin("ada", Some(address), at(number as u64)).expect("it is not locked out");
        }
        assert!(attempts.attempts().len() <= bounds::ATTEMPTS_REMEMBERED);
    }
}
