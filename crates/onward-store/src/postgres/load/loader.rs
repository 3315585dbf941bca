//! The loader: it turns the requests of one round into queries that share a round trip.

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

/// The number of rounds after which a requested task is presumed to begin a long chain.
const SHALLOW: u32 = 2;

/// The most sub-queues that are loaded one by one.
const FEW_SUB_QUEUES: usize = 8;

/// A load in flight.
pub(in crate::postgres) type PendingLoad<'a> = Pin<Box<dyn Future<Output = Result<Vec<QueryResult>>> + Send + 'a>>;

/// A loader for one transaction. It counts repeated requests for the same order, and loads several
/// times as many rows each time, so that a long order takes a logarithmic number of rounds.
#[derive(Debug)]
pub(in crate::postgres) struct Loader<'a> {
    client: &'a ServerConnection<'a>,
    sql: &'a Sql,
    /// The number of tasks that the batch may claim or remove.
    claimed: usize,
    /// True if all waiting tasks are probably few. Then one simple query loads them all, instead of
    /// one that visits each sub-queue.
    all_waiting_loaded: bool,
    /// The time in microseconds, for expired keys.
    now: i64,
    /// True if the first tasks of every sub-queue are to be loaded.
    every_sub_queue: bool,
    /// True if more sub-queues were requested than are loaded one by one.
    many_sub_queues: bool,
    /// The tasks that are requested by number. A query for any task of a session skips them.
    expected: Vec<i64>,
    /// The number of requests for each order so far.
    request_counts: BTreeMap<LoadRequest, u32>,
    /// The number of rounds so far.
    rounds: u32,
}

impl<'a> Loader<'a> {
    /// Creates a loader for writes that claim or remove at most `claimed` tasks.
    pub(in crate::postgres) fn new(
        client: &'a ServerConnection<'a>,
        sql: &'a Sql,
        claimed: usize,
        all_waiting_loaded: bool,
        now: i64,
    ) -> Self {
        let (every_sub_queue, many_sub_queues, expected, request_counts) = (false, false, Vec::new(), BTreeMap::new());
        Self {
            client,
            sql,
            claimed,
            all_waiting_loaded,
            now,
            every_sub_queue,
            many_sub_queues,
            expected,
            request_counts,
            rounds: 0,
        }
    }

    /// Returns true if more sub-queues were requested than are loaded one by one.
    pub(in crate::postgres) fn requested_many_sub_queues(&self) -> bool {
        self.many_sub_queues
    }

    /// Chooses if a request for sub-queues loads tasks of every one. Otherwise it loads as many
    /// sub-queues as a claim may take from, and the others when they are requested.
    pub(in crate::postgres) fn read_every_sub_queue(&mut self, every_sub_queue: bool) {
        self.every_sub_queue = every_sub_queue;
    }

    /// Records which tasks are requested by number.
    pub(in crate::postgres) fn expect(&mut self, requests: &BTreeSet<LoadRequest>) {
        let task = |request: &LoadRequest| if let LoadRequest::Task(task) = request { Some(task.0) } else { None };
        self.expected = requests.iter().filter_map(task).collect();
    }

    /// Begins a round. The first poll of the returned future sends all queries.
    pub(in crate::postgres) fn load(&mut self, requests: BTreeSet<LoadRequest>) -> PendingLoad<'a> {
        self.rounds += 1;
        self.load_more(requests)
    }

    /// Adds requests to the current round.
    pub(in crate::postgres) fn load_more(&mut self, requests: BTreeSet<LoadRequest>) -> PendingLoad<'a> {
        let queries = self.queries(requests);
        let (client, sql) = (self.client, self.sql);
        Box::pin(async move {
            join_all(queries.into_iter().map(|query| ask(client, sql, query))).await.into_iter().collect()
        })
    }

    /// Merges requests of the same kind, and returns the queries.
    fn queries(&mut self, mut requests: BTreeSet<LoadRequest>) -> Vec<LoadQuery> {
        self.load_many_sub_queues_at_once(&mut requests);
        // Each round of a chain shows only its next link. After a few rounds the server follows the
        // rest, so that a chain of a thousand tasks does not take a thousand round trips.
        let deep = self.rounds > SHALLOW;
        let (mut tasks, mut keys, mut children) = (Vec::new(), Vec::new(), Vec::new());
        let (mut held, mut to_cancel, mut queries) = (Vec::new(), Vec::new(), Vec::new());
        let (mut messages, mut most, mut live_children) = (Vec::new(), 0, Vec::new());
        let mut documents = Vec::new();
        for request in requests {
            let limit = self.limit(&request);
            match request {
                LoadRequest::Task(id) => tasks.push(id.0),
                LoadRequest::Key(kind, key) => keys.push((kind, key)),
                LoadRequest::Document(collection, key) => documents.push((collection, key)),
                LoadRequest::Children(parent) => children.push(parent.0),
                LoadRequest::LiveChildren(parent) => live_children.push(parent.0),
                LoadRequest::Messages(task) => {
                    messages.push(task.0);
                    most = limit.max(most);
                }
                LoadRequest::HeldBy(session) => held.push(session.0),
                LoadRequest::CancelRequested(session) => to_cancel.push(session.0),
                LoadRequest::ExpiredKeys => queries.push(LoadQuery::ExpiredKeys(self.now)),
                LoadRequest::RunningCounts => queries.push(LoadQuery::RunningCounts),
                LoadRequest::RunningSessions => queries.push(LoadQuery::RunningSessions(self.expected.clone())),
                LoadRequest::SubQueues if self.all_waiting_loaded && self.rounds == 1 => {
                    queries.push(LoadQuery::Waiting(limit.saturating_mul(2).saturating_add(8)));
                }
                LoadRequest::SubQueues => {
                    let sub_queues = if self.every_sub_queue { usize::MAX } else { limit };
                    queries.push(LoadQuery::SubQueues { limit, sub_queues });
                }
                LoadRequest::SubQueue(sub_queue) => queries.push(LoadQuery::SubQueue(sub_queue, limit)),
                LoadRequest::EndedCount => queries.push(LoadQuery::EndedCount),
                LoadRequest::LiveCount(queue) => queries.push(LoadQuery::LiveCount(queue)),
                LoadRequest::IdRange(from, before) => queries.push(LoadQuery::IdRange(from.0, before.0)),
                LoadRequest::Scheduled
                | LoadRequest::Expiring
                | LoadRequest::Overdue
                | LoadRequest::Ended
                | LoadRequest::Retained
                | LoadRequest::QueueTasks(..) => {
                    queries.push(LoadQuery::Order(request, limit));
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
        queries.extend((!live_children.is_empty()).then_some(LoadQuery::LiveChildren(live_children)));
        queries.extend((!messages.is_empty()).then_some(LoadQuery::Messages(messages, most)));
        queries.extend((!documents.is_empty()).then_some(LoadQuery::Documents(documents)));
        queries.extend((!keys.is_empty()).then_some(LoadQuery::Keys(keys)));
        queries
    }

    /// Replaces requests for many single sub-queues by one request for all, once per transaction.
    fn load_many_sub_queues_at_once(&mut self, requests: &mut BTreeSet<LoadRequest>) {
        let is_sub_queue = |request: &LoadRequest| matches!(request, LoadRequest::SubQueue(_));
        if !self.every_sub_queue && requests.iter().filter(|request| is_sub_queue(request)).count() > FEW_SUB_QUEUES {
            requests.retain(|request| !is_sub_queue(request));
            requests.insert(LoadRequest::SubQueues);
            (self.every_sub_queue, self.many_sub_queues) = (true, true);
        }
    }

    /// Returns the number of rows to load of an order.
    fn limit(&mut self, request: &LoadRequest) -> usize {
        let first = match request {
            LoadRequest::SubQueues => return self.claimed + 2,
            LoadRequest::SubQueue(_) => self.claimed.max(64) + 2,
            LoadRequest::Messages(_) => bounds::TURN_MESSAGES,
            LoadRequest::Ended | LoadRequest::QueueTasks(..) => self.claimed.saturating_add(2),
            // One task shows when the next one is due. Only if that is now, more are needed.
            LoadRequest::Scheduled | LoadRequest::Expiring | LoadRequest::Overdue | LoadRequest::Retained => 2,
            _ => return 0,
        };
        let times = self.request_counts.entry(request.clone()).or_default();
        *times += 1;
        match *times {
            1 => first,
            times => first.max(bounds::SWEEP).saturating_mul(4usize.saturating_pow(times - 2)).saturating_add(8),
        }
    }
}
