//! Whether the last of very many steps cost what the first did.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::Measurement;
use crate::measure::now;

/// When each tenth of the steps of one long run of code had ended; clones share what they know.
#[derive(Debug, Clone, Default)]
pub struct Marks(Arc<Mutex<Vec<Instant>>>);

impl Marks {
    /// Step `step` of `steps` begins, or all have ended where they are the same.
    pub fn step(&self, step: usize, steps: usize) {
        if step == steps || step.is_multiple_of(steps.div_ceil(10).max(1)) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(now());
        }
    }

    /// The time of the last tenth of `steps` over that of the first, with what a step took in each
    /// (`first_us`, `last_us`).
    ///
    /// # Errors
    /// If the steps were taken less than once, or more often.
    pub fn last_over_first(&self, steps: usize) -> Result<Measurement> {
        let marks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        ensure!(marks.len() == 11, "the code was not run exactly once: {} marks", marks.len());
        let tenths: Vec<Duration> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
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
        let marks = Marks::default();
        (0..=20).for_each(|step| marks.step(step, 20));
        marks.last_over_first(20)?;
        (0..=20).chain(0..=20).for_each(|step| marks.step(step, 20));
        assert!(marks.last_over_first(20).is_err());
        Ok(())
    }
}
