//! Writing a change set: one statement for each kind of row. All of them are sent at once, followed
//! by the commit.

use std::future::Future;
use std::pin::Pin;

use futures_util::future::join_all;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

use crate::api::store::{EndedCounts, KindStatistics};
use crate::postgres::commit::outcome::SyncMode;
use crate::postgres::commit::server_numbers::TransactionNumbers;
use crate::postgres::commit::write_documents::documents;
use crate::postgres::commit::write_tasks::tasks;
use crate::postgres::commit::writer_state::CommitId;
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::sql::Sql;
use crate::postgres::working_set::change_set::{ChangeSet, OutputRow};
use crate::postgres::working_set::small_state::SmallStateRow;

/// The parameters of a statement.
pub(in crate::postgres) type Values<'a> = Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)>;

/// One or more statements in flight.
pub(in crate::postgres) type Sent<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// The statements in flight of one transaction.
pub(in crate::postgres) struct Statements<'a> {
    client: &'a ServerConnection<'a>,
    sql: &'a Sql,
    sent: Vec<Sent<'a>>,
}

impl<'a> Statements<'a> {
    /// Adds a statement, which is sent when it is first polled.
    pub(in crate::postgres) fn send(&mut self, statement: &str, parameters: Values<'a>) {
        let (client, text) = (self.client, self.sql.text(statement));
        self.sent.push(Box::pin(async move {
            let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
                parameters.iter().map(|(value, sort)| (&**value as &(dyn ToSql + Sync), sort.clone())).collect();
            client.query_typed(&text, &parameters).await.map(drop)
        }));
    }

    /// Has the server notify other processes when the transaction commits.
    fn notify(&mut self, message: Option<&str>) {
        if let Some(text) = message {
            let channel = crate::postgres::wake::channel(&self.sql.schema);
            let values: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)> =
                vec![(Box::new(channel), Type::TEXT), (Box::new(text.to_owned()), Type::TEXT)];
            self.send("SELECT pg_notify($1, $2)", values);
        }
    }

    /// Adds a statement with a list of numbers, unless the list is empty.
    pub(super) fn send_list(&mut self, statement: &str, ids: &'a Vec<i64>) {
        if !ids.is_empty() {
            self.send(statement, vec![(Box::new(ids), Type::INT8_ARRAY)]);
        }
    }
}

/// The input of [`save_and_commit`].
pub(super) struct Saving<'a> {
    pub(in crate::postgres) change_set: &'a ChangeSet,
    /// The batch's identity, by which a later connection finds out if it was committed.
    pub(in crate::postgres) commit_id: CommitId,
    /// The store's numbers after the transaction.
    pub(in crate::postgres) numbers: TransactionNumbers,
    /// The notification for other processes, if there is anything to notify.
    pub(in crate::postgres) notify: Option<&'a str>,
    pub(in crate::postgres) mode: SyncMode,
}

/// Writes the change set and commits, after the statements sent before.
pub(super) async fn save_and_commit<'a>(
    client: &'a ServerConnection<'a>,
    sql: &'a Sql,
    saving: &'a Saving<'a>,
    before: Vec<Sent<'a>>,
) -> Result<(), Error> {
    let change_set = saving.change_set;
    let mut statements = Statements { client, sql, sent: before };
    rows(&mut statements, change_set);
    counters(&mut statements, saving);
    statements.notify(saving.notify);
    let commit =
        if saving.mode == SyncMode::InCommit { "COMMIT" } else { "SET LOCAL synchronous_commit = off; COMMIT" };
    statements.sent.push(Box::pin(async move { client.batch_execute(commit).await }));
    // The first error in order is the cause. Every statement after it fails because of it, and the
    // commit then rolls back.
    join_all(statements.sent).await.into_iter().collect()
}

/// Writes the change set within a transaction that the caller commits.
pub(super) async fn save_within(
    client: &ServerConnection<'_>,
    sql: &Sql,
    change_set: &ChangeSet,
    given: TransactionNumbers,
    notify: Option<&str>,
) -> Result<(), Error> {
    let mut statements = Statements { client, sql, sent: Vec::new() };
    rows(&mut statements, change_set);
    numbers(&mut statements, change_set, given);
    statements.notify(notify);
    join_all(statements.sent).await.into_iter().collect()
}

/// Writes rows within a transaction, without the store's counters.
pub(in crate::postgres) async fn save_rows(
    client: &ServerConnection<'_>,
    sql: &Sql,
    change_set: &ChangeSet,
) -> Result<(), Error> {
    let mut statements = Statements { client, sql, sent: Vec::new() };
    rows(&mut statements, change_set);
    join_all(statements.sent).await.into_iter().collect()
}

/// Adds the statements for all kinds of rows.
fn rows<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    tasks(statements, change_set);
    turns(statements, change_set);
    output(statements, change_set);
    messages(statements, change_set);
    keys(statements, change_set);
    links(statements, change_set);
    items(statements, change_set);
    log(statements, change_set);
    counts(statements, change_set);
    documents(statements, change_set);
}

/// Deletes dropped histories, and appends events.
fn turns<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    statements.send_list("DELETE FROM {s}.turn WHERE task = ANY($1)", &change_set.dropped_turns);
    if change_set.turns.is_empty() {
        return;
    }
    let rows = &change_set.turns;
    let tasks: Vec<i64> = rows.iter().map(|row| row.task).collect();
    let first: Vec<i64> = rows.iter().map(|row| row.first).collect();
    let events: Vec<i64> = rows.iter().map(|row| row.events).collect();
    let chunks: Vec<&[u8]> = rows.iter().map(|row| &row.chunk[..]).collect();
    statements.send(
        "INSERT INTO {s}.turn (task, first, events, chunk) SELECT * FROM unnest($1, $2, $3, $4)",
        vec![
            (Box::new(tasks), Type::INT8_ARRAY),
            (Box::new(first), Type::INT8_ARRAY),
            (Box::new(events), Type::INT8_ARRAY),
            (Box::new(chunks), Type::BYTEA_ARRAY),
        ],
    );
}

/// Writes the changes to outputs: replaced ones, cut pieces, then new pieces.
fn output<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    statements.send_list("DELETE FROM {s}.output_piece WHERE task = ANY($1)", &change_set.dropped_output);
    if !change_set.cut_output.is_empty() {
        let rows = &change_set.cut_output;
        let tasks: Vec<i64> = rows.iter().map(|cut| cut.task).collect();
        let streams: Vec<i16> = rows.iter().map(|cut| cut.stream.code().into()).collect();
        let from: Vec<i64> = rows.iter().map(|cut| cut.from.cast_signed()).collect();
        let to: Vec<i64> = rows.iter().map(|cut| cut.to.cast_signed()).collect();
        statements.send(
            "DELETE FROM {s}.output_piece p USING unnest($1, $2, $3, $4) AS u (task, stream, cut_from, cut_to) \
             WHERE p.task = u.task AND p.stream = u.stream AND p.at >= u.cut_from AND p.at + p.length <= u.cut_to",
            vec![
                (Box::new(tasks), Type::INT8_ARRAY),
                (Box::new(streams), Type::INT2_ARRAY),
                (Box::new(from), Type::INT8_ARRAY),
                (Box::new(to), Type::INT8_ARRAY),
            ],
        );
    }
    pieces(statements, &change_set.output);
}

/// Writes pieces of output in one statement with an array for each column.
fn pieces<'a>(statements: &mut Statements<'a>, rows: &'a [OutputRow]) {
    if rows.is_empty() {
        return;
    }
    let tasks: Vec<i64> = rows.iter().map(|row| row.task).collect();
    let streams: Vec<i16> = rows.iter().map(|row| row.piece.stream.code().into()).collect();
    let at: Vec<i64> = rows.iter().map(|row| row.piece.at.cast_signed()).collect();
    let lengths: Vec<i32> = rows.iter().map(|row| row.piece.length.cast_signed()).collect();
    let bytes: Vec<&[u8]> = rows.iter().map(|row| &row.piece.bytes[..]).collect();
    statements.send(
        "INSERT INTO {s}.output_piece (task, stream, at, length, bytes) SELECT * FROM unnest($1, $2, $3, $4, $5)",
        vec![
            (Box::new(tasks), Type::INT8_ARRAY),
            (Box::new(streams), Type::INT2_ARRAY),
            (Box::new(at), Type::INT8_ARRAY),
            (Box::new(lengths), Type::INT4_ARRAY),
            (Box::new(bytes), Type::BYTEA_ARRAY),
        ],
    );
}

/// Deletes consumed messages, and inserts new ones.
fn messages<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    let taken = "DELETE FROM {s}.message m USING unnest($1, $2) AS u (task, number) WHERE m.task = u.task AND m.number <= u.number";
    pairs(statements, taken, &change_set.taken_messages);
    if change_set.messages.is_empty() {
        return;
    }
    let rows = &change_set.messages;
    let tasks: Vec<i64> = rows.iter().map(|row| row.task).collect();
    let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
    let bodies: Vec<&[u8]> = rows.iter().map(|row| &row.body[..]).collect();
    statements.send(
        "INSERT INTO {s}.message (task, number, body) SELECT * FROM unnest($1, $2, $3)",
        vec![
            (Box::new(tasks), Type::INT8_ARRAY),
            (Box::new(numbers), Type::INT8_ARRAY),
            (Box::new(bodies), Type::BYTEA_ARRAY),
        ],
    );
}

/// Deletes freed keys, and inserts or updates taken ones.
fn keys<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    if !change_set.freed_keys.is_empty() {
        let (kinds, keys): (Vec<&str>, Vec<&[u8]>) =
            change_set.freed_keys.iter().map(|(kind, key)| (kind.as_str(), key.as_slice())).unzip();
        statements.send(
            "DELETE FROM {s}.unique_key k USING unnest($1, $2) AS u (kind, key) WHERE k.kind = u.kind AND k.key = u.key",
            vec![(Box::new(kinds), Type::TEXT_ARRAY), (Box::new(keys), Type::BYTEA_ARRAY)],
        );
    }
    if !change_set.keys.is_empty() {
        let rows = &change_set.keys;
        let kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
        let keys: Vec<&[u8]> = rows.iter().map(|row| row.key.as_slice()).collect();
        let tasks: Vec<i64> = rows.iter().map(|row| row.task).collect();
        let until: Vec<Option<i64>> = rows.iter().map(|row| row.until).collect();
        statements.send(
            "INSERT INTO {s}.unique_key (kind, key, task, until) SELECT * FROM unnest($1, $2, $3, $4) \
             ON CONFLICT (kind, key) DO UPDATE SET task = excluded.task, until = excluded.until",
            vec![
                (Box::new(kinds), Type::TEXT_ARRAY),
                (Box::new(keys), Type::BYTEA_ARRAY),
                (Box::new(tasks), Type::INT8_ARRAY),
                (Box::new(until), Type::INT8_ARRAY),
            ],
        );
    }
}

/// Updates dependencies and the items of batches.
fn links<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    pairs(
        statements,
        "DELETE FROM {s}.dependency w USING unnest($1, $2) AS u (task, dependent) \
         WHERE w.task = u.task AND w.dependent = u.dependent",
        &change_set.ended_waits,
    );
    pairs(statements, "INSERT INTO {s}.dependency (task, dependent) SELECT * FROM unnest($1, $2)", &change_set.waits);
    statements.send_list("DELETE FROM {s}.batch_item WHERE task = ANY($1)", &change_set.ended_batch_items);
    pairs(statements, "INSERT INTO {s}.batch_item (task, batch) SELECT * FROM unnest($1, $2)", &change_set.batch_items);
}

/// Adds a statement with two columns of numbers, unless they are empty.
fn pairs<'a>(statements: &mut Statements<'a>, statement: &str, pairs: &'a [(i64, i64)]) {
    if !pairs.is_empty() {
        let (one, other): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
        statements.send(statement, vec![(Box::new(one), Type::INT8_ARRAY), (Box::new(other), Type::INT8_ARRAY)]);
    }
}

/// Deletes, updates and inserts rows of the small state.
fn items<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    if !change_set.removed_small_state.is_empty() {
        let (sorts, names): (Vec<&str>, Vec<&str>) =
            change_set.removed_small_state.iter().map(|(sort, name)| (sort.as_str(), name.as_str())).unzip();
        statements.send(
            "DELETE FROM {s}.small_state i USING unnest($1, $2) AS u (sort, name) WHERE i.sort = u.sort AND i.name = u.name",
            vec![(Box::new(sorts), Type::TEXT_ARRAY), (Box::new(names), Type::TEXT_ARRAY)],
        );
    }
    let changed = "UPDATE {s}.small_state i SET body = u.body FROM unnest($1, $2, $3) AS u (sort, name, body) \
                   WHERE i.sort = u.sort AND i.name = u.name";
    let set = "INSERT INTO {s}.small_state (sort, name, body) SELECT * FROM unnest($1, $2, $3) \
               ON CONFLICT (sort, name) DO UPDATE SET body = excluded.body";
    for (statement, items) in [(changed, &change_set.changed_small_state), (set, &change_set.items)] {
        if !items.is_empty() {
            let column = |value: fn(&SmallStateRow) -> &str| -> Vec<&'a str> { items.iter().map(value).collect() };
            statements.send(
                statement,
                vec![
                    (Box::new(column(|item| &item.sort)), Type::TEXT_ARRAY),
                    (Box::new(column(|item| &item.name)), Type::TEXT_ARRAY),
                    (Box::new(column(|item| &item.body)), Type::TEXT_ARRAY),
                ],
            );
        }
    }
}

/// Appends to the log, and removes entries beyond its length.
fn log<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    if change_set.forget_before > 0 {
        statements.send("DELETE FROM {s}.log WHERE entry < $1", vec![(Box::new(change_set.forget_before), Type::INT8)]);
    }
    if !change_set.log.is_empty() {
        let entries: Vec<i64> = change_set.log.iter().map(|(entry, ..)| *entry).collect();
        let next: Vec<i64> = change_set.log.iter().map(|(_, next, _)| *next).collect();
        let changes: Vec<&str> = change_set.log.iter().map(|(.., changes)| changes.as_str()).collect();
        statements.send(
            "INSERT INTO {s}.log (entry, next_task, changes) SELECT * FROM unnest($1, $2, $3)",
            vec![
                (Box::new(entries), Type::INT8_ARRAY),
                (Box::new(next), Type::INT8_ARRAY),
                (Box::new(changes), Type::TEXT_ARRAY),
            ],
        );
    }
}

/// Returns the columns of the counts of ended tasks.
fn ended_columns<'a>(ended: &[EndedCounts]) -> Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)> {
    let columns: [fn(&EndedCounts) -> u64; 5] =
        [|it| it.completed, |it| it.failed, |it| it.dead, |it| it.cancelled, |it| it.expired];
    let column =
        |count: fn(&EndedCounts) -> u64| -> Vec<i64> { ended.iter().map(|ended| count(ended).cast_signed()).collect() };
    columns
        .into_iter()
        .map(|count| (Box::new(column(count)) as Box<dyn ToSql + Sync + Send>, Type::INT8_ARRAY))
        .collect()
}

/// Adds to the daily counts, and to the statistics of each kind.
fn counts<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    if let Some(first) = change_set.first_day {
        statements.send("DELETE FROM {s}.day WHERE day < $1", vec![(Box::new(first), Type::INT8)]);
    }
    let sums = |table: &str| {
        let columns = ["completed", "failed", "dead", "cancelled", "expired"];
        columns.map(|column| format!("{column} = {table}.{column} + excluded.{column}")).join(", ")
    };
    if !change_set.days.is_empty() {
        let days: Vec<i64> = change_set.days.iter().map(|row| row.day).collect();
        let queues: Vec<&str> = change_set.days.iter().map(|row| row.queue.as_str()).collect();
        let ended: Vec<EndedCounts> = change_set.days.iter().map(|row| row.ended).collect();
        let mut parameters: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)> =
            vec![(Box::new(days), Type::INT8_ARRAY), (Box::new(queues), Type::TEXT_ARRAY)];
        parameters.extend(ended_columns(&ended));
        let statement = format!(
            "INSERT INTO {{s}}.day AS d SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (day, queue) DO UPDATE SET {}",
            sums("d")
        );
        statements.send(&statement, parameters);
    }
    for kind in &change_set.statistics {
        statistics(statements, kind, &sums("k"));
    }
}

/// Adds to the statistics of a kind. Few kinds end in one batch, so each has its own statement.
fn statistics<'a>(statements: &mut Statements<'a>, kind: &'a KindStatistics, sums: &str) {
    let statement = format!(
        "INSERT INTO {{s}}.statistics AS k VALUES \
           ($1, $2[1], $2[2], $2[3], $2[4], $2[5], $2[6], $2[7], $2[8], $2[9], $2[10], $3::text[]::numeric[]) \
         ON CONFLICT (kind) DO UPDATE SET {sums}, attempts = k.attempts + excluded.attempts, \
           wait = k.wait + excluded.wait, run = k.run + excluded.run, \
           run_maximum = greatest(k.run_maximum, excluded.run_maximum), io_tasks = k.io_tasks + excluded.io_tasks, \
           io = ARRAY(SELECT a + b FROM unnest(k.io, excluded.io) WITH ORDINALITY AS u (a, b, n) ORDER BY n)"
    );
    let micro = |duration: std::time::Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let ended = kind.ended;
    let numbers = [ended.completed, ended.failed, ended.dead, ended.cancelled, ended.expired, kind.attempts];
    let mut numbers: Vec<i64> = numbers.map(u64::cast_signed).to_vec();
    numbers.extend([micro(kind.wait), micro(kind.run), micro(kind.run_maximum), kind.io.tasks.cast_signed()]);
    let all = crate::api::io::IoKind::ALL;
    let io: Vec<String> = [kind.io.expected, kind.io.recorded]
        .into_iter()
        .flat_map(|io| all.into_iter().map(move |sort| io.get(sort).to_string()))
        .collect();
    statements.send(
        &statement,
        vec![
            (Box::new(kind.kind.as_str()), Type::TEXT),
            (Box::new(numbers), Type::INT8_ARRAY),
            (Box::new(io), Type::TEXT_ARRAY),
        ],
    );
}

/// Writes the store's counters.
///
/// They are sequences, so that numbers that change with every batch leave no dead rows behind. A
/// rollback does not take them back, so an error leaves gaps but never assigns a number twice. Most
/// stay the same, and only changed ones are set.
fn numbers(statements: &mut Statements<'_>, change_set: &ChangeSet, given: TransactionNumbers) {
    let mut parameters = Values::new();
    let text = set_numbers(&mut parameters, change_set, given);
    statements.send(&text, parameters);
}

/// Returns the query that sets the changed counters, and adds its parameters.
fn set_numbers(parameters: &mut Values<'_>, change_set: &ChangeSet, given: TransactionNumbers) -> String {
    let (before, after) = (change_set.counters_before, change_set.counters);
    let version = change_set.changes_small_state().then_some(given.version);
    let numbers = [
        ("last_task", (before.last_task != after.last_task).then_some(after.last_task)),
        ("last_session", (before.last_session != after.last_session).then_some(after.last_session)),
        ("ends", (before.ends != after.ends).then_some(after.ends)),
        ("last_entry", (before.last_entry != after.last_entry).then_some(after.last_entry)),
        ("last_small_state", version),
        ("last_write", Some(given.write)),
        ("last_invalidation", given.are_of_invalidation().then_some(given.invalidation)),
    ];
    let mut set = Vec::new();
    for (sequence, number) in numbers.into_iter().filter_map(|(sequence, number)| Some((sequence, number?))) {
        parameters.push((Box::new(number), Type::INT8));
        set.push(format!("setval('{{s}}.{sequence}', ${})", parameters.len()));
    }
    format!("SELECT {}", set.join(", "))
}

/// Writes the store's counters, and the row that marks this batch of this writer as committed.
fn counters(statements: &mut Statements<'_>, saving: &Saving<'_>) {
    let mut parameters: Values<'_> =
        vec![(Box::new(saving.commit_id.writer), Type::INT8), (Box::new(saving.commit_id.number), Type::INT8)];
    let commit_id = "WITH marker AS (INSERT INTO {s}.writer (id, batch, at) VALUES ($1, $2, now()) \
                  ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at)";
    let numbers = set_numbers(&mut parameters, saving.change_set, saving.numbers);
    statements.send(&format!("{commit_id} {numbers}"), parameters);
}
