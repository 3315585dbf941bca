//! The deadlines of the dispatcher. All times are steady ones.

use std::time::Duration;

use onward_store::{Clock, Timestamp};

use super::run_state::Occupancy;
use crate::bounds;
use crate::store_backoff::StoreBackoff;

/// The actions that the dispatcher takes at some time, or as soon as it can.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// True if there may be something to claim.
    pub(crate) may_claim: bool,
    /// The number of tasks to claim although enough are buffered, because new tasks arrived that
    /// may sort before the buffered ones.
    pub(crate) look_ahead: usize,
    /// True if the cancellation of a running task may have been requested.
    pub(crate) check_cancellations: bool,
    /// The time of the next sweep or claim, if time alone makes one necessary.
    due: Option<Due>,
    /// The time from which the lease counts.
    renewed: Duration,
    /// The time of the last report of progress.
    reported: Duration,
    /// The length of the lease.
    lease: Duration,
    buffer_watch: BufferWatch,
    /// The end of the pause after a store error.
    retry: Option<Duration>,
    backoff: StoreBackoff,
}

/// The time at which time alone changes something: by the steady clock, or by wall time if that is
/// set forward.
#[derive(Debug, Clone, Copy)]
struct Due {
    steady: Duration,
    wall: Timestamp,
}

/// The moment at which a call of the store began, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallStart {
    pub(crate) steady: Duration,
    wall: Timestamp,
}

impl CallStart {
    pub(crate) fn now(clock: &dyn Clock) -> Self {
        Self { steady: clock.steady(), wall: clock.now() }
    }
}

/// The time since which the buffer is watched, and the number of attempts started by then.
#[derive(Debug, Clone, Copy)]
struct BufferWatch {
    since: Duration,
    started: usize,
}

impl Deadlines {
    /// Returns the deadlines of a new run, whose first action is to look for work.
    pub(crate) fn new(lease: Duration, now: Duration) -> Self {
        Self {
            may_claim: true,
            look_ahead: 0,
            check_cancellations: false,
            due: None,
            renewed: now,
            reported: Duration::ZERO,
            lease,
            buffer_watch: BufferWatch { since: now, started: 0 },
            retry: None,
            backoff: StoreBackoff::default(),
        }
    }

    /// Sets the time after which time alone changes something, and replaces an earlier one. The
    /// store measured `after` at some moment of the call that began at `began`.
    pub(crate) fn set_due(&mut self, after: Option<Duration>, began: CallStart, clock: &dyn Clock) {
        // If the wall clock was set forward since that moment, `after` is too long by the jump. An
        // earlier wall time than that of the moment only wakes the engine too early.
        let earlier = |due: Due, after| Due { wall: due.wall.min(began.wall.plus(after)), ..due };
        self.due = after.map(|after| earlier(due(after, clock), after));
        self.may_claim |= after.is_some_and(|after| after.is_zero());
    }

    /// Moves that time forward to at most `after` from now.
    pub(crate) fn due_by(&mut self, after: Duration, clock: &dyn Clock) {
        let new = due(after, clock);
        if self.due.is_none_or(|known| new.steady < known.steady) {
            self.due = Some(new);
        }
    }

    pub(crate) fn is_due(&self, clock: &dyn Clock) -> bool {
        self.due.is_some_and(|due| due.steady <= clock.steady() || due.wall <= clock.now())
    }

    /// Records that the lease counts from `now`, and that the reply had the session's
    /// cancellations.
    pub(crate) fn renewed(&mut self, now: Duration) {
        self.renewed = now;
        self.check_cancellations = false;
    }

    fn renew_at(&self) -> Duration {
        // A third of the lease leaves time for two more renewals if the first one fails. The reply
        // to a renewal lists cancellations, so a hint of one brings the renewal forward.
        let interval =
            if self.check_cancellations { bounds::CANCEL_INTERVAL.min(self.lease / 3) } else { self.lease / 3 };
        self.renewed.saturating_add(interval)
    }

    pub(crate) fn must_renew(&self, now: Duration) -> bool {
        self.renew_at() <= now
    }

    fn report_at(&self) -> Duration {
        self.reported.saturating_add(bounds::PROGRESS_INTERVAL)
    }

    pub(crate) fn may_report(&self, now: Duration) -> bool {
        self.report_at() <= now
    }

    pub(crate) fn reported(&mut self, now: Duration) {
        self.reported = now;
    }

    /// Starts a new watch of the buffer.
    pub(crate) fn watch_buffer(&mut self, started: usize, now: Duration) {
        self.buffer_watch = BufferWatch { since: now, started };
    }

    fn buffer_wait_over(&self) -> Duration {
        self.buffer_watch.since.saturating_add(bounds::BUFFER_WAIT)
    }

    /// Returns the number of attempts that have started since the buffer is watched, or `None`
    /// while that time is too short.
    pub(crate) fn started_in_buffer_wait(&self, started: usize, now: Duration) -> Option<usize> {
        (self.buffer_wait_over() <= now).then(|| started.saturating_sub(self.buffer_watch.started))
    }

    /// Records a store error: the next write waits for a pause.
    pub(crate) fn store_failed(&mut self, now: Duration) {
        self.retry = Some(now.saturating_add(self.backoff.failed()));
    }

    /// Records a reply without an error: the next error begins with the shortest pause again.
    pub(crate) fn store_replied(&mut self) {
        self.backoff.succeeded();
        self.retry = None;
    }

    /// Returns true if the store may be written to, and false during the pause after an error.
    pub(crate) fn may_write(&mut self, now: Duration) -> bool {
        self.retry = self.retry.filter(|retry| now < *retry);
        self.retry.is_none()
    }

    /// Returns the time of the next action in a session if nothing happens before, or `None` if
    /// only an event can bring one.
    pub(crate) fn wake_at(&self, occupancy: Occupancy, progressed: bool, claims: bool) -> Option<Duration> {
        [
            self.due.map(|due| due.steady).filter(|_| claims),
            (!occupancy.is_empty()).then(|| self.renew_at()),
            (progressed && occupancy.running > 0).then(|| self.report_at()),
            (occupancy.buffered > 0).then(|| self.buffer_wait_over()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns the time of the next try after a store error.
    pub(crate) fn retry_at(&self) -> Option<Duration> {
        self.retry
    }
}

fn due(after: Duration, clock: &dyn Clock) -> Due {
    Due { steady: clock.steady().saturating_add(after), wall: clock.now().plus(after) }
}

#[cfg(test)]
mod tests {
    use onward_store::ManualClock;

    use super::super::claims::slot_time::SlotTime;
    use super::super::run_state::Counts;
    use super::*;

    const LEASE: Duration = Duration::from_secs(9);
    const EMPTY: Occupancy = Occupancy {
        running: 0,
        buffered: 0,
        ended: 0,
        counts: Counts { started: 0, ended: 0 },
        slot_time: SlotTime::ZERO,
    };

    #[test]
    fn an_idle_engine_sleeps_until_an_event() {
        let deadlines = Deadlines::new(LEASE, Duration::ZERO);
        assert_eq!(deadlines.wake_at(EMPTY, false, true), None);
    }

    #[test]
    fn a_lease_is_renewed_after_a_third_of_it_while_something_runs() {
        let deadlines = Deadlines::new(LEASE, Duration::ZERO);
        assert_eq!(deadlines.wake_at(Occupancy { running: 1, ..EMPTY }, false, true), Some(LEASE / 3));
    }

    #[test]
    fn hints_of_cancellation_are_followed_at_most_every_interval() {
        let mut deadlines = Deadlines::new(LEASE, Duration::ZERO);
        deadlines.check_cancellations = true;
        assert!(!deadlines.must_renew(bounds::CANCEL_INTERVAL / 2));
        assert!(deadlines.must_renew(bounds::CANCEL_INTERVAL));
    }

    #[test]
    fn a_task_due_by_wall_time_is_noticed_when_the_clock_is_set() {
        let clock = ManualClock::default();
        let mut deadlines = Deadlines::new(LEASE, clock.steady());
        deadlines.set_due(Some(Duration::from_secs(3600)), CallStart::now(&clock), &clock);
        assert!(!deadlines.is_due(&clock));
        clock.set_wall(clock.now().plus(Duration::from_secs(3600)));
        assert!(deadlines.is_due(&clock));
    }

    #[test]
    fn a_task_is_due_if_the_clock_was_set_while_the_reply_was_on_its_way() {
        let clock = ManualClock::default();
        let mut deadlines = Deadlines::new(LEASE, clock.steady());
        let began = CallStart::now(&clock);
        clock.set_wall(clock.now().plus(Duration::from_secs(3600)));
        deadlines.set_due(Some(Duration::from_secs(3600)), began, &clock);
        assert!(deadlines.is_due(&clock));
    }

    #[test]
    fn a_store_that_failed_is_left_alone_for_a_while() {
        let mut deadlines = Deadlines::new(LEASE, Duration::ZERO);
        deadlines.store_failed(Duration::ZERO);
        assert!(!deadlines.may_write(Duration::ZERO));
        assert_eq!(deadlines.retry_at(), Some(bounds::STORE_RETRY_FIRST));
        assert!(deadlines.may_write(bounds::STORE_RETRY_FIRST));
        assert_eq!(deadlines.retry_at(), None);
    }
}
