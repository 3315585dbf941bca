//! The priority that a task needs to start under pressure.

use onward_store::Priority;

use crate::error::{Error, Result};

/// Steps of pressure, each with the lowest priority of a task that may start. A task gains one
/// level of priority for each minute that it has been due, so nothing is held back for ever.
///
/// By default nothing below [`Priority::NORMAL`] starts from 0.5 on, nothing below
/// [`Priority::HIGH`] from 0.75 on, and only [`Priority::URGENT`] tasks from 0.9 on.
///
/// ```
/// use onward::Priority;
/// use onward::pressure::Throttle;
///
/// let throttle = Throttle::none().from(0.8, Priority::HIGH);
/// assert_eq!(throttle.least(0.79), None);
/// assert_eq!(throttle.least(0.8), Some(Priority::HIGH));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Throttle {
    steps: Vec<(f32, Priority)>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::none().from(0.5, Priority::NORMAL).from(0.75, Priority::HIGH).from(0.9, Priority::URGENT)
    }
}

impl Throttle {
    /// Returns a throttle without steps, which holds nothing back.
    #[must_use]
    pub fn none() -> Self {
        Self { steps: Vec::new() }
    }

    /// Adds a step: from this pressure on, above 0.0 and up to 1.0, only tasks of at least this
    /// priority start.
    #[must_use]
    pub fn from(mut self, pressure: f32, least: Priority) -> Self {
        self.steps.push((pressure, least));
        self
    }

    /// Returns the lowest priority of a task that may start at a pressure; `None` if every task
    /// may.
    #[must_use]
    pub fn least(&self, pressure: f32) -> Option<Priority> {
        self.steps.iter().filter(|(from, _)| pressure >= *from).map(|(_, least)| *least).max()
    }

    pub(crate) fn check(&self) -> Result<()> {
        let is_wrong = |pressure: f32| !(pressure > 0.0 && pressure <= 1.0);
        self.steps.iter().find(|(pressure, _)| is_wrong(*pressure)).map_or(Ok(()), |(pressure, _)| {
            Err(Error::invalid(format!(
                "the throttle of the engine begins at a pressure of {pressure}; it must be above 0 and at most 1"
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_the_pressure_the_more_is_held_back() {
        let throttle = Throttle::default();
        let least = [0.0, 0.49, 0.5, 0.75, 0.9, 1.0].map(|pressure| throttle.least(pressure));
        let (normal, high, urgent) = (Some(Priority::NORMAL), Some(Priority::HIGH), Some(Priority::URGENT));
        assert_eq!(least, [None, None, normal, high, urgent, urgent]);
    }

    #[test]
    fn a_pressure_that_cannot_be_is_refused() {
        for pressure in [0.0, -1.0, 1.01, f32::NAN] {
            assert!(Throttle::none().from(pressure, Priority::HIGH).check().is_err(), "{pressure}");
        }
        assert!(Throttle::default().check().is_ok());
    }
}
