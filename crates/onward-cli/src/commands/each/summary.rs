//! The summary of a run.

use std::time::Duration;

use serde_json::{Value, json};

use crate::output::{counted, duration_text};

/// The number of reported lines, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// Lines whose command succeeded.
    pub(super) done: u64,
    /// Lines that failed after all retries.
    pub(super) failed: u64,
    /// Lines, among all these, that had ended before this process began.
    pub(super) earlier: u64,
    /// Lines, among all these, whose command wrote more than was kept.
    pub(super) cut: u64,
}

impl Tally {
    /// Returns the number of reported lines.
    pub(super) fn lines(&self) -> u64 {
        self.done + self.failed
    }

    /// Returns the lines per second, counting only those that ended during this run.
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    fn rate(&self, took: Duration) -> f64 {
        let now = self.lines().saturating_sub(self.earlier) as f64;
        if took.is_zero() { 0.0 } else { now / took.as_secs_f64() }
    }

    /// Returns the summary as one line for people. `unit` is `line` or `item`.
    pub(super) fn text(&self, took: Duration, unit: &str) -> String {
        let Self { done, failed, earlier, .. } = self;
        let ended = format!("{}: {done} done, {failed} failed", counted(self.lines(), unit));
        let took_text = duration_text(took);
        if self.lines() > 0 && self.lines() == *earlier {
            // No line ran, so there is no rate.
            return format!("{ended}; all of them finished earlier; {took_text}");
        }
        format!("{ended}; {earlier} of them finished earlier; {took_text}, {:.1} {unit}s/s", self.rate(took))
    }

    /// Returns a warning if the output of some lines was cut.
    pub(super) fn cut_text(&self, unit: &str) -> Option<String> {
        let lines = counted(self.cut, unit);
        (self.cut > 0)
            .then(|| format!("the output of {lines} was longer than the limit and was cut (onward each --help)"))
    }

    /// Returns the summary as JSON.
    pub(super) fn json(&self, run: &str, took: Duration) -> Value {
        json!({
            "run": run,
            "lines": self.lines(),
            "done": self.done,
            "failed": self.failed,
            "earlier": self.earlier,
            "cut": self.cut,
            "seconds": took.as_secs_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_leaves_out_what_was_finished_earlier() {
        let tally = Tally { done: 9, failed: 1, earlier: 6, cut: 0 };
        let text = tally.text(Duration::from_secs(2), "line");
        assert_eq!(text, "10 lines: 9 done, 1 failed; 6 of them finished earlier; 2.00s, 2.0 lines/s");
    }

    #[test]
    fn where_all_was_finished_earlier_there_is_no_rate() {
        let tally = Tally { done: 9, failed: 1, earlier: 10, cut: 0 };
        let text = tally.text(Duration::from_millis(24), "line");
        assert_eq!(text, "10 lines: 9 done, 1 failed; all of them finished earlier; 24.0ms");
    }
}
