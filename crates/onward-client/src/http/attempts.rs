//! The pauses between attempts, and the end of trying.

use std::time::Duration;

use tokio::time::Instant;

use crate::bounds;
use crate::error::{Error, Result};

/// The attempts of one request or one stream.
#[derive(Debug)]
pub(crate) struct Attempts {
    retry_for: Duration,
    pause: Duration,
    /// The end of trying; `None` while nothing has failed.
    until: Option<Instant>,
}

impl Attempts {
    pub(crate) fn new(retry_for: Duration) -> Self {
        Self { retry_for, pause: bounds::FIRST_PAUSE, until: None }
    }

    /// Starts the time for which attempts may fail again.
    pub(crate) fn succeeded(&mut self) {
        self.until = None;
    }

    /// Makes the next pause short again.
    pub(crate) fn progressed(&mut self) {
        self.pause = bounds::FIRST_PAUSE;
    }

    /// Waits before the next attempt, for `least` if the server named a time.
    ///
    /// # Errors
    /// Returns the failure, if the time for attempts would be over after the pause.
    pub(crate) async fn pause(&mut self, failure: Error, least: Option<Duration>) -> Result<()> {
        let now = Instant::now();
        let until = *self.until.get_or_insert(now + self.retry_for);
        // Random, so that clients that failed together do not come back together.
        let pause = least.unwrap_or_else(|| self.pause.mul_f64(fastrand::f64() / 2.0 + 0.5));
        self.pause = (self.pause * 2).min(bounds::LONGEST_PAUSE);
        if now + pause > until {
            return Err(failure);
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_the_end_of_trying() {
        let failure = || Error::invalid("no");
        let (began, mut attempts, mut count) = (Instant::now(), Attempts::new(Duration::from_secs(60)), 0);
        while attempts.pause(failure(), None).await.is_ok() {
            count += 1;
        }
        assert!(began.elapsed() <= Duration::from_secs(60));
        assert!((12..40).contains(&count), "{count}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_that_the_server_names_is_kept() {
        let (began, mut attempts) = (Instant::now(), Attempts::new(Duration::from_secs(60)));
        attempts.pause(Error::invalid("no"), Some(Duration::from_secs(7))).await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(7));
        let error = attempts.pause(Error::invalid("over"), Some(Duration::from_secs(3600))).await.unwrap_err();
        assert_eq!(error.to_string(), "over");
    }
}
