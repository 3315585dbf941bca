//! `onward stats`

use std::time::Duration;

use onward::observe::Overview;
use onward_store::{IoKind, KindStatistics, PauseRecord, SessionRecord};

use super::queue;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{
    Align, Table, duration_text, in_seconds, moment, optional, print_json, print_line, print_table, size_text,
};
use crate::store_file;

/// Shows counts and statistics.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let overview = Overview::of_store(&*store).await?;
    if options.json {
        print_json(&in_seconds(serde_json::to_value(&overview)?))?;
    } else {
        print_tables(&overview)?;
    }
    Ok(ExitCode::Done)
}

fn print_tables(overview: &Overview) -> std::io::Result<()> {
    print_table(queue::table(&overview.queues))?;
    print_line(format_args!("\nqueue mode: {}", overview.queue_mode))?;
    print_line("")?;
    print_table(kinds(&overview.kinds))?;
    if overview.kinds.iter().any(|kind| !kind.io.is_none()) {
        print_line("")?;
        print_table(moved(&overview.kinds))?;
    }
    if !overview.sessions.is_empty() {
        print_line("")?;
        print_table(sessions(&overview.sessions))?;
    }
    if !overview.pauses.is_empty() {
        print_line("")?;
        print_table(pauses(&overview.pauses))?;
    }
    Ok(())
}

fn kinds(kinds: &[KindStatistics]) -> Table {
    let mut columns = vec![("KIND", Align::Left)];
    let numbers =
        ["COMPLETED", "FAILED", "DEAD", "CANCELLED", "EXPIRED", "ATTEMPTS/TASK", "WAIT/TASK", "RUN/TASK", "LONGEST"];
    columns.extend(numbers.map(|number| (number, Align::Right)));
    let mut table = Table::new(columns).dropping(&["CANCELLED", "EXPIRED", "ATTEMPTS/TASK", "LONGEST", "WAIT/TASK"]);
    for kind in kinds {
        let ended = kind.ended;
        let ends = [ended.completed, ended.failed, ended.dead, ended.cancelled, ended.expired];
        let mut cells = vec![kind.kind.to_string()];
        cells.extend(ends.iter().map(u64::to_string));
        let completed = (ended.completed > 0).then_some(ended.completed);
        cells.push(optional(completed, |tasks| format!("{:.2}", ratio(kind.attempts, tasks))));
        cells.push(optional(completed, |tasks| duration_text(each(kind.wait, tasks))));
        cells.push(optional(completed, |tasks| duration_text(each(kind.run, tasks))));
        cells.push(optional(completed, |_| duration_text(kind.run_maximum)));
        table.row(cells);
    }
    table
}

/// Returns a table of the bytes that completed tasks were expected to move and did move.
fn moved(kinds: &[KindStatistics]) -> Table {
    let mut table = Table::new([
        ("KIND", Align::Left),
        ("IO", Align::Left),
        ("TASKS", Align::Right),
        ("EXPECTED", Align::Right),
        ("RECORDED", Align::Right),
    ]);
    for KindStatistics { kind, io, .. } in kinds {
        for what in IoKind::ALL {
            let (expected, recorded) = (io.expected.get(what), io.recorded.get(what));
            if expected > 0 || recorded > 0 {
                let (tasks, what) = (io.tasks.to_string(), what.name().to_owned());
                table.row([kind.to_string(), what, tasks, size_text(expected), size_text(recorded)]);
            }
        }
    }
    table
}

#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn ratio(all: u64, tasks: u64) -> f64 {
    all as f64 / tasks as f64
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn each(all: Duration, tasks: u64) -> Duration {
    all.div_f64(tasks as f64)
}

fn sessions(sessions: &[SessionRecord]) -> Table {
    let columns = [("SESSION", Align::Right), ("NAME", Align::Left), ("OPENED", Align::Left), ("LEASE", Align::Right)];
    let mut table = Table::new([columns.as_slice(), &[("RUNNING", Align::Right), ("SERVES", Align::Left)]].concat());
    for session in sessions {
        let (opened, lease) = (moment(session.opened_at), duration_text(session.lease));
        let (running, serves) = (session.running.to_string(), session.serves.to_string());
        table.row([session.id.to_string(), session.name.clone(), opened, lease, running, serves]);
    }
    table
}

fn pauses(pauses: &[PauseRecord]) -> Table {
    let mut table = Table::new([("PAUSED", Align::Left), ("UNTIL", Align::Left)]);
    for pause in pauses {
        table.row([queue::scope_text(&pause.scope), optional(pause.until, moment)]);
    }
    table
}
