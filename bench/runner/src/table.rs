//! The table of a record, for a terminal and for a page.

use bench_protocol::Line;

use crate::compare;
use crate::record::Entry;

const HEADINGS: [&str; 13] = [
    "row",
    "durability",
    "system",
    "settings",
    "median",
    "min–max",
    "unit",
    "p50 µs",
    "p99 µs",
    "CPU s",
    "peak MiB",
    "lost/dup",
    "Onward is",
];

/// Returns the table as text in columns.
pub(crate) fn text(entries: &[Entry]) -> String {
    let rows = rows(entries);
    // The message of a missing system may be long, and is the last cell of its row.
    let whole = rows.iter().filter(|row| row.len() == HEADINGS.len());
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| whole.clone().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Returns the table as Markdown.
pub(crate) fn markdown(entries: &[Entry]) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let mut lines: Vec<String> = rows(entries).iter().map(line).collect();
    lines.insert(1, format!("|{}\n", "---|".repeat(HEADINGS.len())));
    lines.concat()
}

/// Returns the headings and a row of cells for each entry. A row's name is only before its first
/// entry.
fn rows(entries: &[Entry]) -> Vec<Vec<String>> {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    let mut group = None;
    for entry in entries {
        let first = group.replace(entry.group()) != Some(entry.group());
        let (row, durability) = entry.group();
        let named = if first { [row.to_owned(), durability.to_string()] } else { [String::new(), String::new()] };
        rows.push(named.into_iter().chain(cells(entry, entries)).collect());
    }
    rows
}

fn cells(entry: &Entry, entries: &[Entry]) -> Vec<String> {
    match entry {
        Entry::Line(line) => line_cells(line, entries),
        Entry::Missing(missing) => {
            let why = format!("missing: {}", missing.missing.replace('|', "/"));
            vec![missing.system.clone(), missing.settings.clone(), why]
        }
    }
}

fn line_cells(line: &Line, entries: &[Entry]) -> Vec<String> {
    let spread = format!("{}–{}", figure(line.min), figure(line.max));
    let optional = |value: Option<f64>| value.map_or(String::new(), figure);
    let losses = format!("{}/{}", line.lost, line.duplicated);
    let ratio = match compare::onward(entries, &line.row, line.durability) {
        Some(onward) if !std::ptr::eq(onward, line) && onward.value > 0.0 && line.value > 0.0 => {
            format!("{}×", figure(compare::times_as_good(onward, line)))
        }
        _ => String::new(),
    };
    vec![
        line.system.clone(),
        settings(line),
        figure(line.value),
        spread,
        line.unit.clone(),
        optional(line.p50),
        optional(line.p99),
        optional(line.cpu_seconds),
        optional(line.peak_mib),
        losses,
        ratio,
    ]
}

/// Returns the settings with the further figures of a line: the longest latency and the achieved
/// rate, the CPU time for each message, or the figures of orchestrations.
///
/// The commits that the run had or repeated follow the settings: submits / claims / completions in
/// a commit that has any, and the number of commits for each 1000 tasks.
fn settings(line: &Line) -> String {
    let with_commits = with_commits(line);
    match (line.extra.get("all_max_us"), line.extra.get("per_second")) {
        (Some(max), Some(rate)) => format!("{with_commits}, max {} ms at {}/s", figure(max / 1e3), figure(*rate)),
        (Some(max), None) => format!("{with_commits}, max {} ms", figure(max / 1e3)),
        _ => match line.extra.get("cpu_us") {
            Some(cpu) => format!("{with_commits}, {} µs CPU each", figure(*cpu)),
            None => with_commits + &of_orchestrations(line),
        },
    }
}

/// Returns the calls that wrote something for each step, the time of the first and of the last
/// steps, and the number of failed orchestrations, if the line has them.
fn of_orchestrations(line: &Line) -> String {
    let extra = |name| line.extra.get(name).copied();
    let calls = extra("calls_per_step").map(|calls| format!(", {} calls a step", figure(calls)));
    let steps = extra("first_us").zip(extra("last_us"));
    let steps = steps.map(|(first, last)| format!(", from {} to {} us", figure(first), figure(last)));
    let failed = extra("failed").filter(|failed| *failed > 0.0).map(|failed| format!(", {failed} failed"));
    [calls, steps, failed].into_iter().flatten().collect()
}

fn with_commits(line: &Line) -> String {
    match (line.commits, line.extra.get("batch")) {
        (Some(commits), _) => {
            let sizes = [commits.submits, commits.claims, commits.completions].map(figure).join("/");
            format!("{} [{sizes}; {}]", line.settings, figure(commits.commits))
        }
        (None, Some(batch)) => format!("{} ({batch})", line.settings),
        (None, None) => line.settings.clone(),
    }
}

/// Returns a number with three or four significant digits.
pub(crate) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_or_more() {
        assert_eq!([123_456.7, 12.34, 1.234, 0.1234].map(figure), ["123457", "12.3", "1.23", "0.123"]);
    }
}
