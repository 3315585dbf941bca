//! The idle timer after which a connection gives back memory that only a busy one needs.

use std::pin::Pin;
use std::task::Context;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::socket::bounds::IDLE_SHRINK_AFTER;

/// The detector of an idle period. Giving memory back in every short pause would mean to allocate
/// it again after each batch.
#[derive(Default)]
pub(super) struct IdleShrink {
    /// The timer. It is created once there is memory to spare.
    timer: Option<Pin<Box<Sleep>>>,
    /// True if the timer runs.
    is_armed: bool,
    /// True if data has moved since the timer was set.
    had_traffic: bool,
}

impl IdleShrink {
    /// Records that data has moved.
    #[inline]
    pub(super) fn on_traffic(&mut self) {
        self.had_traffic = true;
    }

    /// Records that there is nothing to do now. Returns true if memory is to be given back now.
    /// Otherwise the task is woken when this must be called again.
    #[inline]
    pub(super) fn poll_idle(&mut self, can_shrink: bool, context: &mut Context<'_>) -> bool {
        can_shrink && self.wait(context)
    }

    #[cold]
    fn wait(&mut self, context: &mut Context<'_>) -> bool {
        while !self.is_armed || self.poll(context) {
            if self.is_armed && !self.had_traffic {
                self.is_armed = false;
                return true;
            }
            self.arm();
        }
        false
    }

    /// Returns true if the timer has fired.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready())
    }

    fn arm(&mut self) {
        let due = Instant::now() + IDLE_SHRINK_AFTER;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(due),
            None => self.timer = Some(Box::pin(sleep_until(due))),
        }
        (self.is_armed, self.had_traffic) = (true, false);
    }
}
