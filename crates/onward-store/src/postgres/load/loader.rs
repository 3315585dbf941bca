//! Loading what writes and reads look for: all that is wanted at once, one round trip for the lot.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;

use futures_util::future::join_all;

use crate::api::error::Result;
use crate::bounds;
use crate::model::LoadRequest;
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::load::found::QueryResult;
use crate::postgres::load::found::ask;
use crate::postgres::load::query::LoadQuery;
use crate::postgres::sql::Sql;

/// After so many rounds who is wanted is taken to be the beginning of a long chain.
const SHALLOW: u32 = 2;

/// How many lanes are looked into one by one.
const FEW_LANES: usize = 8;

/// What is being loaded.
pub(in crate::postgres) type PendingLoad<'a> = Pin<Box<dyn Future<Output = Result<Vec<QueryResult>>> + Send + 'a>>;

/// Loads, and remembers how often more of the same was wanted: each time several times as much is
/// loaded.
#[derive(Debug)]
pub(in crate::postgres) struct Loader<'a> {
    client: &'a ServerConnection<'a>,
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
    wanted: BTreeMap<LoadRequest, u32>,
    rounds: u32,
}

impl<'a> Loader<'a> {
    pub(in crate::postgres) fn new(
        client: &'a ServerConnection<'a>,
        sql: &'a Sql,
        claimed: usize,
        few_wait: bool,
        now: i64,
    ) -> Self {
        let (every_lane, many_lanes, named, wanted) = (false, false, Vec::new(), BTreeMap::new());
        Self { client, sql, claimed, few_wait, now, every_lane, many_lanes, named, wanted, rounds: 0 }
    }

    /// Whether more lanes were wanted than are looked into one by one.
    pub(in crate::postgres) fn wanted_many_lanes(&self) -> bool {
        self.many_lanes
    }

    /// Has something of every lane loaded where lanes are asked for. Else of so many as a claim may
    /// take from, and of the others when they are wanted.
    pub(in crate::postgres) fn look_into_every_lane(&mut self, every_lane: bool) {
        self.every_lane = every_lane;
    }

    /// Says which tasks are loaded whatever else is.
    pub(in crate::postgres) fn named(&mut self, wants: &BTreeSet<LoadRequest>) {
        let task = |want: &LoadRequest| if let LoadRequest::Task(task) = want { Some(task.0) } else { None };
        self.named = wants.iter().filter_map(task).collect();
    }

    /// Asks for everything at once. The queries are on their way when this is first polled.
    pub(in crate::postgres) fn fetch(&mut self, wants: BTreeSet<LoadRequest>) -> PendingLoad<'a> {
        self.rounds += 1;
        self.fetch_too(wants)
    }

    /// Asks for more in the same round.
    pub(in crate::postgres) fn fetch_too(&mut self, wants: BTreeSet<LoadRequest>) -> PendingLoad<'a> {
        let queries = self.queries(wants);
        let (client, sql) = (self.client, self.sql);
        Box::pin(async move {
            join_all(queries.into_iter().map(|query| ask(client, sql, query))).await.into_iter().collect()
        })
    }

    fn queries(&mut self, mut wants: BTreeSet<LoadRequest>) -> Vec<LoadQuery> {
        self.many_lanes_are_all(&mut wants);
        let deep = self.rounds > SHALLOW;
        let (mut tasks, mut keys, mut children) = (Vec::new(), Vec::new(), Vec::new());
        let (mut held, mut to_cancel, mut queries) = (Vec::new(), Vec::new(), Vec::new());
        let (mut messages, mut most) = (Vec::new(), 0);
        for want in wants {
            let limit = self.limit(&want);
            match want {
                LoadRequest::Task(id) => tasks.push(id.0),
                LoadRequest::Key(kind, key) => keys.push((kind, key)),
                LoadRequest::Children(parent) => children.push(parent.0),
                LoadRequest::Messages(task) => {
                    messages.push(task.0);
                    most = limit.max(most);
                }
                LoadRequest::HeldBy(session) => held.push(session.0),
                LoadRequest::CancelRequested(session) => to_cancel.push(session.0),
                LoadRequest::ExpiredKeys => queries.push(LoadQuery::ExpiredKeys(self.now)),
                LoadRequest::RunningCounts => queries.push(LoadQuery::RunningCounts),
                LoadRequest::RunningSessions => queries.push(LoadQuery::RunningSessions(self.named.clone())),
                LoadRequest::SubQueues if self.few_wait && self.rounds == 1 => {
                    queries.push(LoadQuery::Waiting(limit.saturating_mul(2).saturating_add(8)));
                }
                LoadRequest::SubQueues => {
                    let lanes = if self.every_lane { usize::MAX } else { limit };
                    queries.push(LoadQuery::SubQueues { limit, lanes });
                }
                LoadRequest::SubQueue(lane) => queries.push(LoadQuery::SubQueue(lane, limit)),
                LoadRequest::EndedCount => queries.push(LoadQuery::EndedCount),
                LoadRequest::LiveCount(queue) => queries.push(LoadQuery::LiveCount(queue)),
                LoadRequest::IdRange(from, before) => queries.push(LoadQuery::IdRange(from.0, before.0)),
                LoadRequest::Scheduled
                | LoadRequest::Expiring
                | LoadRequest::Overdue
                | LoadRequest::Ended
                | LoadRequest::Retained
                | LoadRequest::QueueTasks(..) => {
                    queries.push(LoadQuery::Order(want, limit));
                }
            }
        }
        let (tasks, children) =
            (LoadQuery::Tasks { ids: tasks, deep }, LoadQuery::Children { parents: children, deep });
        let lists = [tasks, children, LoadQuery::HeldBy(held), LoadQuery::CancelRequested(to_cancel)];
        let is_empty = |query: &LoadQuery| match query {
            LoadQuery::Tasks { ids, .. }
            | LoadQuery::Children { parents: ids, .. }
            | LoadQuery::HeldBy(ids)
            | LoadQuery::CancelRequested(ids) => ids.is_empty(),
            _ => false,
        };
        queries.extend(lists.into_iter().filter(|query| !is_empty(query)));
        queries.extend((!messages.is_empty()).then_some(LoadQuery::Messages(messages, most)));
        queries.extend((!keys.is_empty()).then_some(LoadQuery::Keys(keys)));
        queries
    }

    /// Of many lanes something is loaded by one query, the first time.
    fn many_lanes_are_all(&mut self, wants: &mut BTreeSet<LoadRequest>) {
        let is_lane = |want: &LoadRequest| matches!(want, LoadRequest::SubQueue(_));
        if !self.every_lane && wants.iter().filter(|want| is_lane(want)).count() > FEW_LANES {
            wants.retain(|want| !is_lane(want));
            wants.insert(LoadRequest::SubQueues);
            (self.every_lane, self.many_lanes) = (true, true);
        }
    }

    /// How many rows of an order to load.
    fn limit(&mut self, want: &LoadRequest) -> usize {
        let first = match want {
            LoadRequest::SubQueues => return self.claimed + 2,
            LoadRequest::SubQueue(_) => self.claimed.max(64) + 2,
            LoadRequest::Messages(_) => bounds::TURN_MESSAGES,
            LoadRequest::Ended | LoadRequest::QueueTasks(..) => self.claimed.saturating_add(2),
            // One says when the next is due. Where that is now, more are.
            LoadRequest::Scheduled | LoadRequest::Expiring | LoadRequest::Overdue | LoadRequest::Retained => 2,
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
