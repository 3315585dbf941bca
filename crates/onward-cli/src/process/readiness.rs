//! Faults of this process that keep it from starting commands: it has run out of files or
//! processes, or the program is gone.
//!
//! Such a fault is never the task's. While a fault lasts, one start is tried at a time, with
//! growing pauses, and every other start waits. When one succeeds, all continue. When nothing runs
//! and no start has succeeded for [`PATIENCE`], the process gives up.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The pause before the second try.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time for which a process that runs no command tries to start one before it gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A fault that lasted this long is reported as over when it ends.
const LONG: Duration = Duration::from_secs(1);

/// A function that takes a line for people.
type Notice = Box<dyn Fn(&str) + Send + Sync>;

/// The ability of this process to start commands.
pub(super) struct Readiness {
    state: Mutex<State>,
    changed: Notify,
    given_up: CancellationToken,
    notice: Notice,
}

#[derive(Debug, Default)]
struct State {
    fault: Option<Fault>,
    /// The number of running commands.
    running: usize,
    /// True if nothing is to be started any more.
    is_closed: bool,
    /// The last fault that was reported to people.
    noticed: Option<String>,
}

/// A reason why no command can be started at present.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    message: String,
    /// The pause before the next try.
    pause: Duration,
    /// The end of the pause. A start that is dropped during its pause leaves the rest to the next
    /// one.
    due: Instant,
    /// The sum of the pauses so far.
    paused: Duration,
    /// The sum of the pauses since a command last ran.
    idle: Duration,
    /// True if a try is in progress or waits for its pause to end.
    tried: bool,
}

impl Fault {
    fn new(message: String) -> Self {
        let (pause, due) = (FIRST_PAUSE, Instant::now() + FIRST_PAUSE);
        Self { message, pause, due, paused: Duration::ZERO, idle: Duration::ZERO, tried: false }
    }

    /// Records that a try has failed while `running` commands ran.
    fn again(&mut self, message: String, running: usize) {
        self.paused += self.pause;
        self.idle = if running == 0 { self.idle + self.pause } else { Duration::ZERO };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.due = Instant::now() + self.pause;
        self.message = message;
    }
}

/// The next step of a start.
enum Step {
    Go,
    Try(Instant),
    Wait,
}

impl Readiness {
    /// Creates a state without a fault. `notice` receives the lines for people.
    pub(super) fn new(notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (state, changed, given_up) = (Mutex::default(), Notify::new(), CancellationToken::new());
        Self { state, changed, given_up, notice: Box::new(notice) }
    }

    /// Waits until a command may be started. The caller must report the result to the returned
    /// turn. Cancel-safe.
    pub(super) async fn turn(&self) -> Turn<'_> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that a change right after it is not missed.
            changed.as_mut().enable();
            match self.step() {
                Step::Go => return Turn { readiness: self, is_try: false },
                Step::Wait => changed.await,
                Step::Try(due) => {
                    // Created before the pause, so that dropping this future passes the try to the
                    // next start.
                    let turn = Turn { readiness: self, is_try: true };
                    tokio::time::sleep_until(due).await;
                    return turn;
                }
            }
        }
    }

    fn step(&self) -> Step {
        let mut state = self.lock();
        if state.is_closed {
            return Step::Wait;
        }
        match &mut state.fault {
            None => Step::Go,
            Some(fault) if fault.tried => Step::Wait,
            Some(fault) => {
                fault.tried = true;
                Step::Try(fault.due)
            }
        }
    }

    /// Waits until this process gives up, and returns the reason.
    pub(super) async fn given_up(&self) -> String {
        self.given_up.cancelled().await;
        self.lock().fault.as_ref().map(|fault| fault.message.clone()).unwrap_or_default()
    }

    /// Gives up at once, for a reason that waiting does not remove.
    pub(super) fn give_up(&self, message: String) {
        self.lock().fault = Some(Fault { tried: true, ..Fault::new(message) });
        self.given_up.cancel();
    }

    /// Records that a command has ended.
    fn ended(&self) {
        let mut state = self.lock();
        state.running = state.running.saturating_sub(1);
        if state.is_closed {
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// Starts nothing from now on, and waits until nothing runs.
    pub(super) async fn wind_down(&self) {
        self.lock().is_closed = true;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock().running == 0 {
                return;
            }
            changed.await;
        }
    }

    fn started(&self) {
        let mut state = self.lock();
        state.running += 1;
        let Some(fault) = state.fault.take() else { return };
        let was_long = fault.paused >= LONG && state.noticed.take().is_some();
        drop(state);
        self.changed.notify_waiters();
        if was_long {
            (self.notice)("commands can be started again");
        }
    }

    fn failed(&self, message: String, is_try: bool) {
        let mut state = self.lock();
        let running = state.running;
        match &mut state.fault {
            // A start that was in progress when the fault occurred adds no information.
            Some(_) if !is_try => return,
            Some(fault) => fault.again(message.clone(), running),
            none => *none = Some(Fault::new(message.clone())),
        }
        let is_over = state.fault.as_ref().is_some_and(|fault| fault.idle >= PATIENCE);
        let is_new = state.noticed.as_ref() != Some(&message);
        state.noticed = Some(message.clone());
        drop(state);
        if is_new {
            (self.notice)(&format!("{message}; no attempt is charged for it, and it is retried"));
        }
        if is_over {
            self.given_up.cancel();
        }
    }

    /// Lets the next start try, after a try has ended.
    fn tried(&self) {
        if let Some(fault) = &mut self.lock().fault {
            fault.tried = self.given_up.is_cancelled();
        }
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The right to start one command.
pub(super) struct Turn<'r> {
    readiness: &'r Readiness,
    is_try: bool,
}

impl<'r> Turn<'r> {
    /// Records that the command has started. It counts as running until the returned value is
    /// dropped.
    pub(super) fn started(self) -> Run<'r> {
        self.readiness.started();
        Run { readiness: self.readiness }
    }

    /// Records that this process could not start the command.
    pub(super) fn failed(self, message: String) {
        self.readiness.failed(message, self.is_try);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_try {
            self.readiness.tried();
        }
    }
}

/// A running command.
pub(super) struct Run<'r> {
    readiness: &'r Readiness,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.readiness.ended();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn fault(tries: usize, running: usize) -> Fault {
        let mut fault = Fault::new("no file left".to_owned());
        (0..tries).for_each(|_| fault.again("no file left".to_owned(), running));
        fault
    }

    #[test]
    fn patience_ends_only_while_nothing_runs() {
        assert!(fault(10, 0).idle >= PATIENCE && fault(10, 1).idle.is_zero());
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        assert_eq!([0, 1, 9].map(|tries| fault(tries, 0).pause), [FIRST_PAUSE, FIRST_PAUSE * 2, LONGEST_PAUSE]);
    }

    #[tokio::test]
    async fn while_there_is_a_fault_one_start_is_tried_at_a_time_and_all_go_on_after_one_has_succeeded() {
        let readiness = Readiness::new(|_| {});
        readiness.turn().await.failed("no file left".to_owned());
        let attempt = readiness.turn().await;
        assert!(matches!(readiness.step(), Step::Wait));
        let _run = attempt.started();
        assert!(matches!(readiness.step(), Step::Go));
    }

    #[tokio::test]
    async fn a_try_that_is_dropped_lets_the_next_one_try() {
        let readiness = Readiness::new(|_| {});
        readiness.turn().await.failed("no file left".to_owned());
        drop(readiness.turn().await);
        assert!(matches!(readiness.step(), Step::Try(_)));
    }

    #[tokio::test]
    async fn a_fault_is_reported_once() {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&notices);
        let readiness = Readiness::new(move |line| noted.lock().unwrap().push(line.to_owned()));
        for _ in 0..3 {
            readiness.turn().await.failed("no file left".to_owned());
        }
        assert_eq!(notices.lock().unwrap().len(), 1);
    }
}
