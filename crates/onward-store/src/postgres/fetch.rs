//! Loading what writes and reads look for: all that is wanted at once, one round trip for the lot.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;

use futures_util::future::join_all;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connection::{Each, LinkTo};
use super::error::classified;
use super::row::{BEHIND_LINKS, head, task};
use super::sql::Sql;
use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::bounds;
use crate::memory::{Holders, KeyRow, Lane, LaneHead, LaneRows, LoadedTask, Partial, RunningRows, Want};

/// After so many rounds who is wanted is taken to be the beginning of a long chain.
const SHALLOW: u32 = 2;

/// How many lanes are looked into one by one.
const FEW_LANES: usize = 8;

/// How many tasks of a chain are loaded at once: more than one write, or one sweep, follows.
const DEEP: usize = 4 * bounds::CASCADE;

/// Wants of one sort, as one query.
#[derive(Debug)]
enum Query {
    /// Those with these numbers; where `deep`, also all that wait for them, and for those.
    Tasks {
        ids: Vec<i64>,
        deep: bool,
    },
    Keys(Vec<(Name, String)>),
    KeysOver(i64),
    /// The children of these; where `deep`, also theirs.
    Children {
        parents: Vec<i64>,
        deep: bool,
    },
    /// The first messages of each of these.
    Messages(Vec<i64>, usize),
    Held(Vec<i64>),
    ToCancel(Vec<i64>),
    Running,
    /// A task of each session that runs any, but for these.
    Holders(Vec<i64>),
    /// Everything that waits, unless it is more than so much.
    Waiting(usize),
    Lanes {
        limit: usize,
        /// How many lanes of a queue and a kind are looked into, those with the first tasks.
        lanes: usize,
    },
    Lane(Lane, usize),
    Order(Want, usize),
    EndedCount,
    Live(Name),
    Between(i64, i64),
}

/// What came of a query.
#[derive(Debug)]
pub(super) struct Fetched {
    query: Query,
    found: Found,
    /// Of tasks that are gone: who waits for them, and their members.
    waits: Vec<(i64, i64)>,
    members: Vec<(i64, i64)>,
}

/// What is being loaded.
pub(super) type Reading<'a> = Pin<Box<dyn Future<Output = Result<Vec<Fetched>>> + Send + 'a>>;

/// The rows that came.
#[derive(Debug, Default)]
struct Found {
    tasks: Vec<LoadedTask>,
    /// How many of each lane were asked for, if the server said so.
    of_lane: Option<i64>,
    /// Lanes that were not looked into.
    heads: Vec<LaneHead>,
    /// Those that are no tasks.
    rows: Vec<Row>,
}

/// Loads, and remembers how often more of the same was wanted: each time several times as much is
/// loaded.
#[derive(Debug)]
pub(super) struct Fetcher<'a> {
    client: &'a LinkTo<'a>,
    sql: &'a Sql,
    /// How many tasks the claims among the writes ask for.
    claimed: usize,
    /// Whether all that waits is probably no more than that: then it is loaded at once, and not
    /// lane by lane.
    few_wait: bool,
    now: i64,
    /// Whether something of every lane is to be loaded.
    every_lane: bool,
    /// Whether more lanes were wanted than are looked into one by one.
    many_lanes: bool,
    /// Tasks that are loaded whatever else is: who looks for one of some sort need not find these.
    named: Vec<i64>,
    wanted: BTreeMap<Want, u32>,
    rounds: u32,
}

impl<'a> Fetcher<'a> {
    pub(super) fn new(client: &'a LinkTo<'a>, sql: &'a Sql, claimed: usize, few_wait: bool, now: i64) -> Self {
        let (every_lane, many_lanes, named, wanted) = (false, false, Vec::new(), BTreeMap::new());
        Self { client, sql, claimed, few_wait, now, every_lane, many_lanes, named, wanted, rounds: 0 }
    }

    /// Whether more lanes were wanted than are looked into one by one.
    pub(super) fn wanted_many_lanes(&self) -> bool {
        self.many_lanes
    }

    /// Has something of every lane loaded where lanes are asked for. Else of so many as a claim may
    /// take from, and of the others when they are wanted.
    pub(super) fn look_into_every_lane(&mut self, every_lane: bool) {
        self.every_lane = every_lane;
    }

    /// Says which tasks are loaded whatever else is.
    pub(super) fn named(&mut self, wants: &BTreeSet<Want>) {
        let task = |want: &Want| if let Want::Task(task) = want { Some(task.0) } else { None };
        self.named = wants.iter().filter_map(task).collect();
    }

    /// Asks for everything at once. The queries are on their way when this is first polled.
    pub(super) fn fetch(&mut self, wants: BTreeSet<Want>) -> Reading<'a> {
        self.rounds += 1;
        self.fetch_too(wants)
    }

    /// Asks for more in the same round.
    pub(super) fn fetch_too(&mut self, wants: BTreeSet<Want>) -> Reading<'a> {
        let queries = self.queries(wants);
        let (client, sql) = (self.client, self.sql);
        Box::pin(async move {
            join_all(queries.into_iter().map(|query| ask(client, sql, query))).await.into_iter().collect()
        })
    }

    fn queries(&mut self, mut wants: BTreeSet<Want>) -> Vec<Query> {
        self.many_lanes_are_all(&mut wants);
        let deep = self.rounds > SHALLOW;
        let (mut tasks, mut keys, mut children) = (Vec::new(), Vec::new(), Vec::new());
        let (mut held, mut to_cancel, mut queries) = (Vec::new(), Vec::new(), Vec::new());
        let (mut messages, mut most) = (Vec::new(), 0);
        for want in wants {
            let limit = self.limit(&want);
            match want {
                Want::Task(id) => tasks.push(id.0),
                Want::Key(kind, key) => keys.push((kind, key)),
                Want::Children(parent) => children.push(parent.0),
                Want::Messages(task) => {
                    messages.push(task.0);
                    most = limit.max(most);
                }
                Want::Held(session) => held.push(session.0),
                Want::ToCancel(session) => to_cancel.push(session.0),
                Want::KeysOver => queries.push(Query::KeysOver(self.now)),
                Want::Running => queries.push(Query::Running),
                Want::Holders => queries.push(Query::Holders(self.named.clone())),
                Want::Lanes if self.few_wait && self.rounds == 1 => {
                    queries.push(Query::Waiting(limit.saturating_mul(2).saturating_add(8)));
                }
                Want::Lanes => {
                    let lanes = if self.every_lane { usize::MAX } else { limit };
                    queries.push(Query::Lanes { limit, lanes });
                }
                Want::Lane(lane) => queries.push(Query::Lane(lane, limit)),
                Want::EndedCount => queries.push(Query::EndedCount),
                Want::LiveIn(queue) => queries.push(Query::Live(queue)),
                Want::Between(from, before) => queries.push(Query::Between(from.0, before.0)),
                Want::Scheduled | Want::Expiring | Want::Overdue | Want::Ended | Want::Retained | Want::OfQueue(..) => {
                    queries.push(Query::Order(want, limit));
                }
            }
        }
        let (tasks, children) = (Query::Tasks { ids: tasks, deep }, Query::Children { parents: children, deep });
        let lists = [tasks, children, Query::Held(held), Query::ToCancel(to_cancel)];
        let is_empty = |query: &Query| match query {
            Query::Tasks { ids, .. }
            | Query::Children { parents: ids, .. }
            | Query::Held(ids)
            | Query::ToCancel(ids) => ids.is_empty(),
            _ => false,
        };
        queries.extend(lists.into_iter().filter(|query| !is_empty(query)));
        queries.extend((!messages.is_empty()).then_some(Query::Messages(messages, most)));
        queries.extend((!keys.is_empty()).then_some(Query::Keys(keys)));
        queries
    }

    /// Of many lanes something is loaded by one query, the first time.
    fn many_lanes_are_all(&mut self, wants: &mut BTreeSet<Want>) {
        let is_lane = |want: &Want| matches!(want, Want::Lane(_));
        if !self.every_lane && wants.iter().filter(|want| is_lane(want)).count() > FEW_LANES {
            wants.retain(|want| !is_lane(want));
            wants.insert(Want::Lanes);
            (self.every_lane, self.many_lanes) = (true, true);
        }
    }

    /// How many rows of an order to load.
    fn limit(&mut self, want: &Want) -> usize {
        let first = match want {
            Want::Lanes => return self.claimed + 2,
            Want::Lane(_) => self.claimed.max(64) + 2,
            Want::Messages(_) => bounds::TURN_MESSAGES,
            Want::Ended | Want::OfQueue(..) => self.claimed.saturating_add(2),
            // One says when the next is due. Where that is now, more are.
            Want::Scheduled | Want::Expiring | Want::Overdue | Want::Retained => 2,
            _ => return 0,
        };
        let times = self.wanted.entry(want.clone()).or_default();
        *times += 1;
        match *times {
            1 => first,
            times => first.max(bounds::SWEEP).saturating_mul(4usize.saturating_pow(times - 2)).saturating_add(8),
        }
    }
}

/// Takes what came into what is known.
pub(super) fn take(partial: &mut Partial, fetched: Vec<Fetched>) -> Result<()> {
    for one in fetched {
        take_one(partial, one)?;
    }
    partial.settle();
    Ok(())
}

fn take_one(partial: &mut Partial, fetched: Fetched) -> Result<()> {
    let Fetched { query, found: Found { tasks, of_lane, heads, rows }, waits, members } = fetched;
    match query {
        Query::Tasks { ids, .. } => {
            take_tasks(partial, tasks);
            partial.looked_for(&ids, &waits, &members);
        }
        Query::Keys(keys) => {
            take_keys(partial, &rows)?;
            keys.into_iter().for_each(|(kind, key)| partial.known(Want::Key(kind, key)));
        }
        Query::KeysOver(_) => take_keys(partial, &rows)?,
        Query::Children { mut parents, deep } => {
            if deep && tasks.len() < DEEP {
                parents.extend(tasks.iter().map(|task| task.id().0));
            }
            take_tasks(partial, tasks);
            parents.into_iter().for_each(|parent| partial.known(Want::Children(TaskId(parent))));
        }
        Query::Messages(tasks, most) => take_messages(partial, &tasks, &rows, most)?,
        Query::Held(sessions) => {
            take_tasks(partial, tasks);
            sessions.into_iter().for_each(|session| partial.known(Want::Held(SessionId(session))));
        }
        Query::ToCancel(sessions) => {
            take_tasks(partial, tasks);
            sessions.into_iter().for_each(|session| partial.known(Want::ToCancel(SessionId(session))));
        }
        Query::Between(from, before) => {
            take_tasks(partial, tasks);
            partial.known(Want::Between(TaskId(from), TaskId(before)));
        }
        Query::Running => take_running(partial, &rows)?,
        Query::Holders(but) => take_holders(partial, but, &rows)?,
        Query::Waiting(limit) if tasks.len() < limit => partial.all_waiting(tasks),
        Query::Waiting(_) => take_tasks(partial, tasks),
        Query::Lanes { limit, .. } => {
            let limit = of_lane.and_then(|size| usize::try_from(size).ok()).unwrap_or(limit);
            partial.lanes(LaneRows { tasks, limit }, heads);
        }
        Query::Lane(lane, limit) => partial.lane(&lane, LaneRows { tasks, limit }),
        Query::Order(want, limit) => partial.order(&want, tasks, limit),
        Query::EndedCount => partial.ended(count(&rows)?),
        Query::Live(queue) => partial.live(queue, count(&rows)?),
    }
    Ok(())
}

fn count(rows: &[Row]) -> Result<u64> {
    let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose().map_err(classified)?;
    Ok(count.map_or(0, i64::cast_unsigned))
}

fn take_tasks(partial: &mut Partial, tasks: Vec<LoadedTask>) {
    for task in tasks {
        partial.task(task);
    }
}

fn take_keys(partial: &mut Partial, rows: &[Row]) -> Result<()> {
    for row in rows {
        let get = || -> std::result::Result<KeyRow, tokio_postgres::Error> {
            Ok(KeyRow { kind: row.try_get(0)?, key: row.try_get(1)?, task: row.try_get(2)?, until: row.try_get(3)? })
        };
        partial.key(get().map_err(classified)?)?;
    }
    Ok(())
}

fn take_messages(partial: &mut Partial, tasks: &[i64], rows: &[Row], most: usize) -> Result<()> {
    let mut found: BTreeMap<i64, Vec<Vec<u8>>> = tasks.iter().map(|task| (*task, Vec::new())).collect();
    for row in rows {
        let (task, body): (i64, Vec<u8>) = (row.try_get(0).map_err(classified)?, row.try_get(1).map_err(classified)?);
        found.entry(task).or_default().push(body);
    }
    for (task, messages) in found {
        partial.messages(TaskId(task), &messages, messages.len() < most)?;
    }
    Ok(())
}

fn take_running(partial: &mut Partial, rows: &[Row]) -> Result<()> {
    let mut running = RunningRows::new();
    for row in rows {
        let (session, count): (i64, i64) = (row.get(0), row.get(4));
        let (queue, kind, group): (&str, &str, &str) = (row.get(1), row.get(2), row.get(3));
        let group = if group.is_empty() { None } else { Some(Name::new(group)?) };
        running.insert((SessionId(session), Name::new(queue)?, Name::new(kind)?, group), count.cast_unsigned());
    }
    partial.running(&running);
    Ok(())
}

fn take_holders(partial: &mut Partial, but: Vec<i64>, rows: &[Row]) -> Result<()> {
    let but = but.into_iter().map(TaskId).collect();
    let mut holders = Holders { but, ..Holders::default() };
    for row in rows {
        let (session, task): (i64, i64) = (row.try_get(0).map_err(classified)?, row.try_get(1).map_err(classified)?);
        holders.one_of.insert(SessionId(session), TaskId(task));
    }
    partial.holders(holders);
    Ok(())
}

impl Found {
    fn take(&mut self, query: &Query, row: Row) -> Result<()> {
        match query {
            Query::Keys(_)
            | Query::KeysOver(_)
            | Query::Messages(..)
            | Query::Running
            | Query::Holders(_)
            | Query::EndedCount
            | Query::Live(_) => self.rows.push(row),
            Query::Lanes { .. } if row.try_get::<_, Option<i16>>(1).map_err(classified)?.is_none() => {
                self.heads.push(head(&row)?);
            }
            Query::Lanes { .. } => {
                self.of_lane = Some(row.try_get(BEHIND_LINKS).map_err(classified)?);
                self.tasks.push(task(&row)?);
            }
            Query::Tasks { .. }
            | Query::Children { .. }
            | Query::Held(_)
            | Query::ToCancel(_)
            | Query::Waiting(_)
            | Query::Lane(..)
            | Query::Order(..)
            | Query::Between(..) => self.tasks.push(task(&row)?),
        }
        Ok(())
    }
}

async fn ask(client: &LinkTo<'_>, sql: &Sql, query: Query) -> Result<Fetched> {
    let mut found = Found::default();
    rows(client, sql, &query, &mut |row| found.take(&query, row)).await?;
    let mut fetched = Fetched { query, found, waits: Vec::new(), members: Vec::new() };
    let Query::Tasks { ids, .. } = &fetched.query else { return Ok(fetched) };
    let there: BTreeSet<i64> = fetched.found.tasks.iter().map(|task| task.id().0).collect();
    let gone: Vec<i64> = ids.iter().copied().filter(|id| !there.contains(id)).collect();
    if !gone.is_empty() {
        fetched.waits =
            pairs(client, &sql.text("SELECT task, dependent FROM {s}.wait WHERE task = ANY($1)"), &gone).await?;
        fetched.members =
            pairs(client, &sql.text("SELECT member, bundle FROM {s}.member WHERE bundle = ANY($1)"), &gone).await?;
    }
    Ok(fetched)
}

async fn pairs(client: &LinkTo<'_>, sql: &str, ids: &Vec<i64>) -> Result<Vec<(i64, i64)>> {
    let rows = client.query_typed(sql, &[(ids, Type::INT8_ARRAY)]).await.map_err(classified)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn rows(client: &LinkTo<'_>, sql: &Sql, query: &Query, each: &mut Each<'_>) -> Result<()> {
    match query {
        Query::Tasks { ids, deep: false } => by_ids(client, &sql.all_tasks("WHERE t.id = ANY($1)"), ids, each).await,
        Query::Tasks { ids, .. } => by_ids(client, &sql.all_tasks(&dependents()), ids, each).await,
        Query::Children { parents, deep: false } => {
            by_ids(client, &sql.all_tasks("WHERE t.parent = ANY($1)"), parents, each).await
        }
        Query::Children { parents, .. } => by_ids(client, &sql.all_tasks(&descendants()), parents, each).await,
        Query::Messages(tasks, most) => {
            let text = sql.text(
                "SELECT m.task, m.body FROM unnest($1) AS u (id) CROSS JOIN LATERAL (\
                   SELECT task, number, body FROM {s}.message WHERE task = u.id ORDER BY number LIMIT $2) m \
                 ORDER BY m.task, m.number",
            );
            client.each_typed(&text, &[(tasks, Type::INT8_ARRAY), (&number(*most), Type::INT8)], each).await
        }
        Query::Held(sessions) => by_ids(client, &sql.tasks("task", "WHERE t.session = ANY($1)"), sessions, each).await,
        Query::ToCancel(sessions) => {
            by_ids(client, &sql.tasks("task", "WHERE t.session = ANY($1) AND t.cancel_requested"), sessions, each).await
        }
        Query::Keys(keys) => {
            let kinds: Vec<&str> = keys.iter().map(|(kind, _)| kind.as_str()).collect();
            let texts: Vec<&[u8]> = keys.iter().map(|(_, key)| key.as_bytes()).collect();
            let text = sql.text(
                "SELECT k.kind, k.key, k.task, k.until FROM unnest($1, $2) AS u (kind, key) \
                 CROSS JOIN LATERAL (SELECT * FROM {s}.taken k WHERE k.kind = u.kind AND k.key = u.key) k",
            );
            client.each_typed(&text, &[(&kinds, Type::TEXT_ARRAY), (&texts, Type::BYTEA_ARRAY)], each).await
        }
        Query::KeysOver(now) => {
            let text = sql.text("SELECT kind, key, task, until FROM {s}.taken WHERE until <= $1");
            client.each_typed(&text, &[(now, Type::INT8)], each).await
        }
        Query::Running => {
            let text = sql.text(
                "SELECT session, queue, kind, grp, count(*) FROM {s}.task WHERE session IS NOT NULL \
                 GROUP BY session, queue, kind, grp",
            );
            client.each_typed(&text, &[], each).await
        }
        Query::Holders(but) => client.each_typed(&sql.text(HOLDERS), &[(but, Type::INT8_ARRAY)], each).await,
        Query::Waiting(limit) => client.each_typed(&sql.waiting(), &[(&number(*limit), Type::INT8)], each).await,
        Query::Lanes { limit, lanes } => {
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&number(*limit), Type::INT8), (&number(*lanes), Type::INT8)];
            client.each_typed(&sql.lanes(), &parameters, each).await
        }
        Query::Lane(lane, limit) => one_lane(client, sql, lane, *limit, each).await,
        Query::Order(want, limit) => order(client, sql, want, *limit, each).await,
        Query::EndedCount => {
            let text = sql.text("SELECT count(*) FROM {s}.ended WHERE overdue_at IS NULL");
            client.each_typed(&text, &[], each).await
        }
        Query::Live(queue) => {
            let text = sql.text("SELECT count(*) FROM {s}.task WHERE queue = $1");
            client.each_typed(&text, &[(&queue.as_str(), Type::TEXT)], each).await
        }
        Query::Between(from, before) => {
            let text = sql.all_tasks("WHERE t.id >= $1 AND t.id < $2");
            client.each_typed(&text, &[(from, Type::INT8), (before, Type::INT8)], each).await
        }
    }
}

/// A task of each session that runs any, but for those with the numbers `$1`: from the newest
/// session on, each with one look into the index, and there of the newest tasks first, for the old
/// ones are those that have ended and are in the index still. What stands in place of `session =
/// h.session` has the planner use no other index.
const HOLDERS: &str = "WITH RECURSIVE holder (session) AS (\
       (SELECT session FROM {s}.task WHERE session IS NOT NULL ORDER BY session DESC LIMIT 1) \
       UNION ALL \
       SELECT n.session FROM holder h CROSS JOIN LATERAL (\
         SELECT session FROM {s}.task WHERE session < h.session ORDER BY session DESC LIMIT 1) n) \
     SELECT h.session, n.id FROM holder h CROSS JOIN LATERAL (\
       SELECT id FROM {s}.task WHERE session >= h.session AND session <= h.session AND id NOT IN (SELECT unnest($1)) \
       ORDER BY session DESC, cancel_requested DESC, id DESC LIMIT 1) n";

/// Those with the numbers `$1`, who waits for them, and so on.
fn dependents() -> String {
    format!(
        "WHERE t.id = ANY(ARRAY(WITH RECURSIVE down (id) AS (\
           SELECT unnest($1) UNION SELECT w.dependent FROM down d JOIN {{s}}.wait w ON w.task = d.id) \
         SELECT id FROM down LIMIT {DEEP}))"
    )
}

/// The children of those with the numbers `$1`, theirs, and so on.
fn descendants() -> String {
    format!(
        "WHERE t.parent = ANY(ARRAY(WITH RECURSIVE down (id) AS (\
           SELECT unnest($1) UNION SELECT c.id FROM down d CROSS JOIN LATERAL (\
             SELECT id FROM {{s}}.task WHERE parent = d.id UNION ALL \
             SELECT id FROM {{s}}.ended WHERE parent = d.id) c) \
         SELECT id FROM down LIMIT {DEEP}))"
    )
}

async fn by_ids(client: &LinkTo<'_>, sql: &str, ids: &Vec<i64>, each: &mut Each<'_>) -> Result<()> {
    client.each_typed(sql, &[(ids, Type::INT8_ARRAY)], each).await
}

async fn one_lane(client: &LinkTo<'_>, sql: &Sql, lane: &Lane, limit: usize, each: &mut Each<'_>) -> Result<()> {
    let rest = "WHERE t.state = 2 AND t.queue = $1 AND t.kind = $2 AND t.grp = $3 AND t.series = $4 AND t.orchestration = $6 \
                ORDER BY t.place, t.id LIMIT $5";
    let name = |name: &Option<Name>| name.as_ref().map(ToString::to_string).unwrap_or_default();
    let (group, series) = (name(&lane.group), name(&lane.series));
    let (queue, kind) = (lane.queue.as_str(), lane.kind.as_str());
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&queue, Type::TEXT),
        (&kind, Type::TEXT),
        (&group, Type::TEXT),
        (&series, Type::TEXT),
        (&number(limit), Type::INT8),
        (&lane.orchestration, Type::BOOL),
    ];
    client.each_typed(&sql.tasks("task", rest), &parameters, each).await
}

async fn order(client: &LinkTo<'_>, sql: &Sql, want: &Want, limit: usize, each: &mut Each<'_>) -> Result<()> {
    let limit = number(limit);
    let text = match want {
        Want::Scheduled => sql.tasks("task", "WHERE t.state = 1 ORDER BY t.run_at, t.id LIMIT $1"),
        Want::Expiring => sql
            .tasks("task", "WHERE t.expires_at IS NOT NULL AND t.session IS NULL ORDER BY t.expires_at, t.id LIMIT $1"),
        Want::Overdue => sql.tasks("task", "WHERE t.overdue_at IS NOT NULL ORDER BY t.overdue_at, t.id LIMIT $1"),
        Want::OfQueue(queue, states) => {
            let states: Vec<i16> = states.iter().map(code).collect();
            let both = sql.all_tasks("WHERE t.queue = $2 AND t.state = ANY($3)");
            let text = format!("{both} ORDER BY 1 LIMIT $1");
            let queue = queue.as_str();
            return client
                .each_typed(&text, &[(&limit, Type::INT8), (&queue, Type::TEXT), (&states, Type::INT2_ARRAY)], each)
                .await;
        }
        Want::Retained => sql.tasks("ended", "WHERE t.overdue_at IS NOT NULL ORDER BY t.overdue_at, t.id LIMIT $1"),
        _ => sql.tasks("ended", "WHERE t.overdue_at IS NULL ORDER BY t.end_number LIMIT $1"),
    };
    client.each_typed(&text, &[(&limit, Type::INT8)], each).await
}

/// The number of a state, as the tables have it.
pub(super) fn code(state: &TaskState) -> i16 {
    i16::try_from(state.code()).unwrap_or_default()
}

pub(super) fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
