//! Comparisons of the rows of workflows.

use bench_protocol::{DurabilityLevel, Line};

use crate::compare::{Comparison, by_rounds, find, onward};
use crate::record::Entry;

/// The rows of a step with very many items.
const BATCHES: [&str; 2] = ["W/embedded_batch/items/100000", "W/postgres_batch/items/100000"];

/// Returns how fast the items of one step are beside plain tasks.
pub(crate) fn comparisons(entries: &[Entry]) -> Vec<Comparison> {
    let levels = [DurabilityLevel::Memory, DurabilityLevel::Normal, DurabilityLevel::Full];
    let of_row = |row| levels.into_iter().filter_map(move |durability| items(entries, row, durability));
    BATCHES.into_iter().flat_map(of_row).collect()
}

fn items(entries: &[Entry], row: &str, durability: DurabilityLevel) -> Option<Comparison> {
    let is_plain = |line: &Line| line.system == "onward" && line.settings == "plain tasks";
    let lines = [onward(entries, row, durability)?, find(entries, row, durability, is_plain)?];
    let ratio = by_rounds(lines, |[items, plain]| items / plain);
    Some(Comparison::of_ratio(format!("{row}, {durability}: items of one step over plain tasks"), ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(settings: &str, value: f64) -> Entry {
        let line = format!(
            r#"{{"row":"{}","durability":"full","system":"onward","settings":"{settings}","value":{value},"unit":"tasks/s","better":"higher",
                "min":0,"max":0,"p50":null,"p99":null,"runs":1,"lost":0,"duplicated":0,"figures":[{value}]}}"#,
            BATCHES[0]
        );
        Entry::Line(serde_json::from_str(&line).unwrap())
    }

    #[test]
    fn the_items_of_a_step_are_compared_with_plain_tasks() {
        let figures: Vec<_> =
            comparisons(&[line("default", 600.0), line("plain tasks", 800.0)]).iter().map(Comparison::figure).collect();
        assert_eq!(figures, ["0.75"]);
    }
}
