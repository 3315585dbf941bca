//! Loading what writes and reads look for: all that is wanted at once, one round trip for the lot.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;

use futures_util::future::join_all;

use crate::api::error::Result;
use crate::bounds;
use crate::model::Want;
use crate::postgres::connect::connection::LinkTo;
use crate::postgres::load::found::Fetched;
use crate::postgres::load::found::ask;
use crate::postgres::load::query::Query;
use crate::postgres::sql::Sql;

/// After so many rounds who is wanted is taken to be the beginning of a long chain.
const SHALLOW: u32 = 2;

/// How many lanes are looked into one by one.
const FEW_LANES: usize = 8;

/// What is being loaded.
pub(in crate::postgres) type Reading<'a> = Pin<Box<dyn Future<Output = Result<Vec<Fetched>>> + Send + 'a>>;

/// Loads, and remembers how often more of the same was wanted: each time several times as much is
/// loaded.
#[derive(Debug)]
pub(in crate::postgres) struct Fetcher<'a> {
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
    pub(in crate::postgres) fn new(
        client: &'a LinkTo<'a>,
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
    pub(in crate::postgres) fn named(&mut self, wants: &BTreeSet<Want>) {
        let task = |want: &Want| if let Want::Task(task) = want { Some(task.0) } else { None };
        self.named = wants.iter().filter_map(task).collect();
    }

    /// Asks for everything at once. The queries are on their way when this is first polled.
    pub(in crate::postgres) fn fetch(&mut self, wants: BTreeSet<Want>) -> Reading<'a> {
        self.rounds += 1;
        self.fetch_too(wants)
    }

    /// Asks for more in the same round.
    pub(in crate::postgres) fn fetch_too(&mut self, wants: BTreeSet<Want>) -> Reading<'a> {
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
