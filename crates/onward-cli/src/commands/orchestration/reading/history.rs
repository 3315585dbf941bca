//! `onward orchestration history`

use std::collections::HashMap;

use onward::orchestration::{HistoryEvent, decode_history};
use onward_store::{HistoryChunk, Page, Store, StoreReads, TaskFilter, TaskId, TaskRecord, Timestamp, bounds};

use super::timeline::{Description, Timeline};
use crate::commands::orchestration::selection::OneOrchestration;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{colored_state, duration_text, one_line, print_json, print_line, remark};
use crate::store_file;

/// The number of chunks that are read at a time.
const CHUNKS: usize = 100;

/// The number of columns of the final result or error that are shown.
const SHOWN_COLUMNS: usize = 200;

/// Prints the history of an orchestration.
pub(crate) async fn run(options: &GlobalOptions, one: OneOrchestration) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let record = one.record(&*store).await?;
    let mut printer = HistoryPrinter::new(options.json);
    let mut from = 0;
    loop {
        let chunks = store.instance_history(record.id, from, CHUNKS).await?;
        let Some(last) = chunks.last() else { break };
        from = last.first + last.events;
        for chunk in &chunks {
            printer.chunk(&*store, record.id, chunk).await?;
        }
    }
    match printer.timeline {
        None => remark(format_args!("orchestration {} has not started", record.id)),
        Some(_) if options.json => {}
        Some(_) => print_end(&record, printer.started)?,
    }
    Ok(ExitCode::Done)
}

struct HistoryPrinter {
    json: bool,
    started: Timestamp,
    /// Present from the first event on.
    timeline: Option<Timeline>,
    /// The time of the last event that was printed.
    last: Option<Timestamp>,
}

impl HistoryPrinter {
    fn new(json: bool) -> Self {
        Self { json, started: Timestamp::MIN, timeline: None, last: None }
    }

    async fn chunk(&mut self, store: &dyn Store, task: TaskId, chunk: &HistoryChunk) -> anyhow::Result<()> {
        for (number, event) in (chunk.first..).zip(decode_history(chunk)?) {
            if let HistoryEvent::Started { at, .. } = event {
                self.started = Timestamp::from_microseconds(at);
                self.timeline = Some(Timeline::new(tasks_of(store, task, self.started).await?));
            }
            self.event(number, &event)?;
        }
        Ok(())
    }

    fn event(&mut self, number: u64, event: &HistoryEvent) -> anyhow::Result<()> {
        let timeline = self.timeline.get_or_insert_with(|| Timeline::new(HashMap::new()));
        let description = timeline.describe(event);
        let now = timeline.now;
        if self.json {
            print_json(&timeline.json(number, event))?;
        } else if let Some(Description { is_reaction, text }) = description {
            // The time is printed only when it changes.
            let changed = now.filter(|_| self.last != now);
            let time = changed.map_or_else(String::new, |now| format!("+{}", duration_text(now - self.started)));
            let indent = if is_reaction { "    " } else { "" };
            print_line(format_args!("{number:>6}  {time:>9}  {indent}{text}"))?;
            self.last = now;
        }
        Ok(())
    }
}

/// Returns the numbers of the tasks that an orchestration has submitted since it began or
/// restarted, by operation.
async fn tasks_of(store: &dyn Store, parent: TaskId, started: Timestamp) -> anyhow::Result<HashMap<u64, TaskId>> {
    let filter = TaskFilter { parent: Some(parent), submitted_from: Some(started), ..TaskFilter::default() };
    let (mut tasks, mut before) = (HashMap::new(), None);
    loop {
        let page = store.tasks(filter.clone(), Page { before, limit: bounds::PAGE }).await?;
        for task in page.tasks {
            if let Some(operation) = task.report {
                tasks.entry(operation).or_insert(task.id);
            }
        }
        before = page.next;
        if before.is_none() {
            return Ok(tasks);
        }
    }
}

/// Prints the end of the orchestration, which its history does not contain.
fn print_end(record: &TaskRecord, started: Timestamp) -> std::io::Result<()> {
    let Some(at) = record.finished_at.filter(|_| record.state.is_ended()) else { return Ok(()) };
    let result = record.result.bytes().map(|result| String::from_utf8_lossy(result).into_owned());
    let end = result.or_else(|| record.errors.last().map(|error| error.message.clone()));
    let end = end.map(|end| format!(": {}", one_line(&end, SHOWN_COLUMNS))).unwrap_or_default();
    let time = format!("+{}", duration_text(at - started));
    print_line(format_args!("{:>6}  {time:>9}  {}{end}", "end", colored_state(record.state)))
}
