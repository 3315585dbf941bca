//! Compares the last of very many steps with the first: both should cost the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::Measurement;
use crate::measure::now;

/// The times at which each tenth of the steps of one long run ended. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct StepTimes(Arc<Mutex<Vec<Instant>>>);

impl StepTimes {
    /// Records the start of step `step` of `steps`, or the end of all steps if both are equal.
    pub fn step(&self, step: usize, steps: usize) {
        if step == steps || step.is_multiple_of(steps.div_ceil(10).max(1)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(now());
        }
    }

    /// Returns the time of the last tenth of `steps` divided by that of the first. Adds the time of
    /// a step in each (`first_us`, `last_us`).
    ///
    /// # Errors
    /// Returns an error if the steps were not run exactly once.
    pub fn last_over_first(&self, steps: usize) -> Result<Measurement> {
        let times = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        ensure!(times.len() == 11, "the code was not run exactly once: {} times", times.len());
        let tenths: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (first, last) = (tenths.first().context("no first")?, tenths.last().context("no last")?);
        let per_step = |tenth: &Duration| tenth.as_secs_f64() * 1e6 / (steps as f64 / 10.0);
        Ok(Measurement::of(last.as_secs_f64() / first.as_secs_f64())
            .with("first_us", per_step(first))
            .with("last_us", per_step(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_taken_twice_are_no_measurement() -> Result<()> {
        let times = StepTimes::default();
        (0..=20).for_each(|step| times.step(step, 20));
        times.last_over_first(20)?;
        (0..=20).chain(0..=20).for_each(|step| times.step(step, 20));
        assert!(times.last_over_first(20).is_err());
        Ok(())
    }
}
