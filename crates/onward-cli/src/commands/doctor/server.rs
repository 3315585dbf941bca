//! Checks of the PostgreSQL server of a store, and of the connection to it.

use std::time::Duration;

use onward_store::{PostgresReport, PostgresStore};

use super::finding::Finding;
use crate::output::{counted, duration_text};

/// The oldest supported version, in the server's own numbering.
const OLDEST: u32 = 150_000;

/// The time from which a commit is slow.
const COMMIT_SLOW: Duration = Duration::from_millis(20);

/// The age from which a snapshot is old: it keeps the server from removing rows that died since.
const SNAPSHOT_OLD: Duration = Duration::from_secs(600);

/// The number of dead rows from which they slow every claim, if there are more of them than live
/// rows.
const DEAD_MANY: u64 = 100_000;

/// The number of connections that must be free for further processes.
const CONNECTIONS_FREE: u32 = 10;

/// Checks the server, the rights of the role, and whether messages arrive.
pub(super) async fn check(store: &PostgresStore) -> anyhow::Result<Vec<Finding>> {
    let report = store.check().await?;
    Ok(vec![
        version(&report),
        rights(&report),
        connection(&report),
        messages(&report),
        commit(&report),
        connections(&report),
        dead_rows(&report),
        inbox(&report),
        snapshot(&report),
    ])
}

fn version(report: &PostgresReport) -> Finding {
    let found = format!("PostgreSQL {}", report.version);
    if report.is_standby {
        let remedy = "name the primary; with several hosts, add target_session_attrs=read-write to the URL";
        return Finding::bad("server", format!("{found} is a standby, which rejects writes"), remedy);
    }
    if report.version_number < OLDEST {
        return Finding::bad("server", found, "PostgreSQL 15 and newer are supported; upgrade the server");
    }
    Finding::ok("server", found)
}

fn rights(report: &PostgresReport) -> Finding {
    match missing_rights(&report.missing_rights) {
        Some(missing) => missing,
        None => Finding::ok("rights", "the role may read and write every table of the store"),
    }
}

fn missing_rights(missing: &[String]) -> Option<Finding> {
    let found = match missing {
        [] => return None,
        [_] => "the role lacks a right".to_owned(),
        _ => format!("the role lacks {} rights", missing.len()),
    };
    Some(Finding::bad("rights", found, format!("as the owner: {}", missing.join("; "))))
}

/// Returns a finding if the store cannot be opened because rights are missing. Returns `None` if
/// none are missing, or if the server cannot be asked.
pub(super) async fn rights_to_open(url: &str) -> Option<Finding> {
    let missing = PostgresStore::options().missing_rights(url).await.ok()?;
    missing_rights(&missing)
}

fn connection(report: &PostgresReport) -> Finding {
    let found = if report.is_pooled {
        "a pooler in transaction mode, or one like it"
    } else {
        "straight to the server, or in session mode"
    };
    Finding::ok("connection", found)
}

fn messages(report: &PostgresReport) -> Finding {
    match report.message {
        Some(took) => Finding::ok("messages", format!("a message to other processes takes {}", duration_text(took))),
        None => Finding::warn(
            "messages",
            "notifications do not arrive, so each process polls for changes: up to 5 s late when it was idle",
            "give the processes that run tasks a URL that does not lead through the pooler",
        ),
    }
}

fn commit(report: &PostgresReport) -> Finding {
    let found = format!("a commit takes {} (median of 20)", duration_text(report.commit));
    if !report.syncs || report.synchronous_commit == "off" {
        let found = format!("{found}, and does not wait for the disk");
        return Finding::warn(
            "commit",
            found,
            "set fsync = on and synchronous_commit = on; otherwise a crash of the server loses acknowledged work",
        );
    }
    if report.commit > COMMIT_SLOW {
        return Finding::warn("commit", found, "a lone submit waits for one; submit in batches, or use a faster disk");
    }
    Finding::ok("commit", found)
}

fn connections(report: &PostgresReport) -> Finding {
    let found = format!("{} of {} connections are in use", report.connections, report.connections_limit);
    if report.connections_limit.saturating_sub(report.connections) >= CONNECTIONS_FREE {
        return Finding::ok("connections", found);
    }
    Finding::warn(
        "connections",
        found,
        "a process uses up to 6: raise max_connections, or put a pooler before the server",
    )
}

fn dead_rows(report: &PostgresReport) -> Finding {
    let found = format!(
        "{} of live tasks, {} not yet removed by vacuum",
        counted(report.live_rows, "row"),
        counted(report.dead_rows, "dead one")
    );
    if report.dead_rows <= DEAD_MANY.max(report.live_rows) {
        return Finding::ok("vacuum", found);
    }
    Finding::warn(
        "vacuum",
        found,
        "let autovacuum run more often and without a pause, and find the transaction that holds a snapshot",
    )
}

fn inbox(report: &PostgresReport) -> Finding {
    match report.inbox_refused {
        0 => Finding::ok("inbox", "no task from onward_submit was rejected"),
        refused => Finding::warn(
            "inbox",
            format!("{} from onward_submit cannot be accepted", counted(refused, "task")),
            "the column error of the table inbox has the reason; submit corrected tasks, and delete the rows",
        ),
    }
}

fn snapshot(report: &PostgresReport) -> Finding {
    match report.oldest_snapshot {
        Some(age) if age > SNAPSHOT_OLD => Finding::warn(
            "snapshot",
            format!("a transaction has held a snapshot for {}", duration_text(age)),
            "vacuum removes no row that was deleted since; see backend_xmin in pg_stat_activity, and end that transaction",
        ),
        _ if !report.sees_others => {
            Finding::ok("snapshot", "this role holds no old snapshot; to see others, it needs pg_read_all_stats")
        }
        _ => Finding::ok("snapshot", "no transaction holds an old snapshot"),
    }
}
