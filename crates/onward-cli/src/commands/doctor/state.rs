//! Checks of the state of the store.

use onward_store::{Durability, QueueRecord, SessionRecord, SqliteReader, Store, StoreReads};

use super::finding::Finding;
use crate::commands::each::{self, RunRecord};
use crate::commands::queue::scope_text;
use crate::output::{counted, moment, optional};

/// The divisor of the file size that gives the unused space worth releasing: half of the file.
const FREE_SHARE: u64 = 2;

/// The unused space below which nothing is reported.
const FREE_BYTES: u64 = 64 * 1024 * 1024;

/// The largest number of abandoned runs of `onward each` in the report; `onward each --list` has
/// all.
const RUNS_SHOWN: usize = 20;

/// Reads the whole file, and checks its integrity and its consistency.
pub(super) async fn file(store: &SqliteReader) -> anyhow::Result<Vec<Finding>> {
    let report = store.check().await?;
    let problems: Vec<String> = report.integrity.into_iter().chain(report.consistency).collect();
    Ok(vec![
        integrity(&problems),
        page_checksums(report.page_checksums),
        unused(report.free_bytes, report.database_bytes),
    ])
}

fn page_checksums(has_them: bool) -> Finding {
    let found = if has_them {
        "each page has one: damage is an error, and only Onward may write to the file"
    } else {
        "none: a bit that flips within a value is not noticed; `onward --store NEW store rebuild FILE --page-checksums` writes a copy with them"
    };
    Finding::ok("page-checksums", found.to_owned())
}

fn integrity(problems: &[String]) -> Finding {
    let Some(first) = problems.first() else {
        return Finding::ok("integrity", "the file has no damage");
    };
    let remedy =
        "stop all that use the store, keep a copy of it, and restore the last backup: onward store restore FILE";
    Finding::bad("integrity", format!("{} problems, the first: {first}", problems.len()), remedy)
}

fn unused(free: u64, size: u64) -> Finding {
    let found = format!("{free} of {size} bytes in the file are unused");
    if free < FREE_BYTES || free < size / FREE_SHARE {
        return Finding::ok("unused", found);
    }
    Finding::warn("unused", found, "onward store compact returns them to the disk; writers wait until it ends")
}

/// Checks durability, sessions and leases, dead letters and pauses.
pub(super) async fn check(store: &dyn Store) -> anyhow::Result<Vec<Finding>> {
    let (queues, sessions) = (store.queues().await?, store.sessions().await?);
    let mut findings = vec![durability(store), self::sessions(&sessions, &queues), dead_letters(&queues)];
    findings.extend(pauses(store).await?);
    findings.extend(abandoned(&each::runs(store).await?));
    Ok(findings)
}

fn durability(store: &dyn Store) -> Finding {
    let durability = store.info().durability;
    match durability {
        Durability::Full => Finding::ok("durability", "full: acknowledged work survives power loss"),
        Durability::Normal | Durability::Memory => Finding::warn(
            "durability",
            format!("{durability}: acknowledged work survives a killed process, not power loss"),
            "leave out --durability normal where that matters",
        ),
    }
}

fn sessions(sessions: &[SessionRecord], queues: &[QueueRecord]) -> Finding {
    let running: u64 = queues.iter().map(|queue| queue.running).sum();
    let held: u64 = sessions.iter().map(|session| session.running).sum();
    let found =
        format!("{held} of {} held by {}", counted(running, "running task"), counted(sessions.len() as u64, "session"));
    if held == running {
        return Finding::ok("sessions", found);
    }
    let remedy = "the rest belongs to workers that are gone; the next worker that runs takes it over, so start one";
    Finding::warn("sessions", found, remedy)
}

fn dead_letters(queues: &[QueueRecord]) -> Finding {
    let dead: u64 = queues.iter().map(|queue| queue.ended.dead).sum();
    if dead == 0 {
        return Finding::ok("dead", "no dead letters");
    }
    Finding::warn(
        "dead",
        counted(dead, "dead letter"),
        "list them with onward task list --state dead; retry one with onward task retry TASK",
    )
}

async fn pauses(store: &dyn Store) -> anyhow::Result<Vec<Finding>> {
    let pauses = store.pauses().await?;
    let finding = |pause: &onward_store::PauseRecord| {
        let until = optional(pause.until, moment);
        let found = format!("{} is paused until: {until}", scope_text(&pause.scope));
        Finding::warn("paused", found, "no task of it starts; end it with onward queue resume")
    };
    Ok(pauses.iter().map(finding).collect())
}

/// Reports runs of `onward each` that have waiting lines but no process.
fn abandoned(runs: &[RunRecord]) -> Vec<Finding> {
    let abandoned = runs.iter().filter(|run| run.waiting + run.running > 0 && run.processes == 0);
    let finding = |run: &RunRecord| {
        let (lines, since) = (counted(run.waiting + run.running, "line"), optional(run.submitted_at, moment));
        let of = run.program.as_ref().map(|program| format!(" (of `{program}`)")).unwrap_or_default();
        let found =
            format!("{lines} of the run {}{of}, submitted {since}, wait and no process works on them", run.name);
        let remedy = format!(
            "run the same onward each again to continue, or forget them with onward each --forget {}",
            run.name
        );
        Finding::warn("run", found, remedy)
    };
    abandoned.take(RUNS_SHOWN).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn unused_room_is_worth_a_word_where_it_is_much_and_half_of_the_file() {
        let level = |free, size| unused(free, size).level;
        assert_eq!(level(FREE_BYTES, 2 * FREE_BYTES), Level::Warn);
        assert_eq!(level(FREE_BYTES, 2 * FREE_BYTES + 2), Level::Ok);
        assert_eq!(level(FREE_BYTES - 1, FREE_BYTES), Level::Ok);
    }
}
