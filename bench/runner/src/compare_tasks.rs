//! What the rows of tasks on a file come to.

use bench_protocol::{Class, Line};

use crate::compare::{Comparison, by_rounds, find, onward};
use crate::record::Entry;

/// Seconds of the row of an idle process.
const IDLE_SECONDS: f64 = 60.0;

/// Lives beside the ceiling with the same commits, a submit beside a bare one, and what an idle process takes.
pub(crate) fn comparisons(entries: &[Entry]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for class in [Class::Normal, Class::Full] {
        all.extend(["T/file_lives/64", "T/file_lives/4096"].iter().filter_map(|row| lives(entries, row, class)));
        all.extend(submit(entries, class));
    }
    all.extend(idle(entries));
    all
}

fn lives(entries: &[Entry], row: &str, class: Class) -> Option<Comparison> {
    let ceiling = ceiling(entries, row, class, "same commits")?;
    let ratio = by_rounds([onward(entries, row, class)?, ceiling], |[ours, bare]| ours / bare);
    Some(Comparison::of_ratio(format!("{row}, {class}: lives over those of the ceiling with the same commits"), ratio))
}

fn submit(entries: &[Entry], class: Class) -> Option<Comparison> {
    const ROW: &str = "T/file_submit/1";
    let bare = ceiling(entries, ROW, class, "default")?;
    let ratio = by_rounds([onward(entries, ROW, class)?, bare], |[ours, bare]| ours / bare);
    Some(Comparison::of_ratio(format!("{ROW}, {class}: the median submit over a bare insert and commit"), ratio))
}

fn idle(entries: &[Entry]) -> Option<Comparison> {
    const ROW: &str = "T/file_idle/60";
    let seconds = onward(entries, ROW, Class::Normal)?.cpu_seconds?;
    let what = format!("{ROW}: hundredths of one core that the whole process takes, its start and end included");
    Some(Comparison::of(what, seconds / IDLE_SECONDS * 100.0))
}

fn ceiling<'a>(entries: &'a [Entry], row: &str, class: Class, settings: &str) -> Option<&'a Line> {
    find(entries, row, class, |line| line.system == "ceiling" && line.settings == settings)
}
