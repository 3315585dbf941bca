//! The text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::table::Metric;
use crate::http::bounds;

/// The value of a label in which values beyond the bound are joined.
const OTHER: &str = "other";

/// The samples of one metric, by the values of its labels.
#[derive(Debug)]
pub(super) struct Samples {
    metric: &'static Metric,
    values: BTreeMap<Vec<String>, f64>,
    join: fn(f64, f64) -> f64,
}

impl Samples {
    /// Returns a metric without samples. Samples that are joined are added.
    pub(super) fn new(metric: &'static Metric) -> Self {
        Self { metric, values: BTreeMap::new(), join: |one, other| one + other }
    }

    /// Joins samples by their largest value.
    pub(super) fn largest(self) -> Self {
        Self { join: f64::max, ..self }
    }

    /// Adds a sample. The first label names a queue, a kind or a scope, of which there may be any
    /// number: beyond [`bounds::METRIC_VALUES`] they are joined.
    pub(super) fn add(&mut self, number: usize, labels: &[&str], value: f64) {
        let mut labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        if number >= bounds::METRIC_VALUES
            && let Some(first) = labels.first_mut()
        {
            OTHER.clone_into(first);
        }
        let join = self.join;
        self.values.entry(labels).and_modify(|present| *present = join(*present, value)).or_insert(value);
    }

    /// Writes the metric.
    pub(super) fn write(&self, text: &mut String) {
        let Metric { name, kind, help, .. } = self.metric;
        // Writing to a text does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (values, value) in &self.values {
            let pairs = self.metric.labels.iter().zip(values);
            let pairs: Vec<String> = pairs.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::table::{OLDEST, TASKS};
    use super::*;

    #[test]
    fn values_beyond_the_bound_are_joined() {
        let (mut tasks, mut oldest) = (Samples::new(TASKS), Samples::new(OLDEST).largest());
        for number in 0..bounds::METRIC_VALUES + 2 {
            tasks.add(number, &[&format!("q{number}"), "waiting"], 1.0);
            oldest.add(number, &[&format!("q{number}")], 5.0);
        }
        let mut text = String::new();
        tasks.write(&mut text);
        oldest.write(&mut text);
        assert!(text.contains("onward_tasks{queue=\"other\",state=\"waiting\"} 2\n"), "{text}");
        assert!(text.contains("onward_oldest_waiting_seconds{queue=\"other\"} 5\n"), "{text}");
    }

    #[test]
    fn labels_are_escaped() {
        let mut samples = Samples::new(OLDEST);
        samples.add(0, &["a\"b\\c\nd"], 0.5);
        let mut text = String::new();
        samples.write(&mut text);
        assert!(text.ends_with("onward_oldest_waiting_seconds{queue=\"a\\\"b\\\\c\\nd\"} 0.5\n"), "{text}");
    }
}
