//! Guards of limits and schedules, by which `If-Match` at a server holds against the command line.

use std::sync::Arc;

use onward_store::{
    ExpectedVersion, LimitScope, Name, Outcome, PutDocument, Refusal, Store, StoreDecorator, StoreFuture, Write,
};

/// The collection of the guards, as servers on the store keep it.
const COLLECTION: &str = "onward.guards";

/// A store that puts the guard of a limit or a schedule in the commit of its change. A server that
/// has compared an entity tag before the commit then refuses its own change, instead of losing this
/// one.
#[derive(Debug)]
pub(crate) struct GuardingStore(pub(crate) Arc<dyn Store>);

impl StoreDecorator for GuardingStore {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        let guards: Vec<Option<String>> = writes.iter().map(guarded).collect();
        if guards.iter().all(Option::is_none) {
            return self.0.apply(writes);
        }
        Box::pin(async move {
            let pairs = writes.into_iter().zip(&guards);
            let writes =
                pairs.map(|(write, guard)| guard.as_ref().map_or_else(|| Ok(write.clone()), |it| both(&write, it)));
            let writes = writes.collect::<onward_store::Result<Vec<_>>>()?;
            let outcomes = self.0.apply(writes).await?;
            Ok(outcomes.into_iter().zip(guards).map(|(outcome, guard)| own(outcome, guard.is_some())).collect())
        })
    }
}

/// Returns the name of the guard of what a write changes.
fn guarded(write: &Write) -> Option<String> {
    match write {
        Write::SetLimit(set) => Some(format!("limit {}", scope_text(&set.scope))),
        // The concurrency of a queue is its limit.
        Write::SetQueue(set) => Some(format!("limit queue:{}", set.queue)),
        Write::SetSchedule(set) => Some(format!("schedule {}", set.schedule.name)),
        Write::DeleteSchedule { schedule }
        | Write::PauseSchedule { schedule }
        | Write::ResumeSchedule { schedule, .. } => Some(format!("schedule {schedule}")),
        _ => None,
    }
}

/// Returns a scope as servers write it.
fn scope_text(scope: &LimitScope) -> String {
    match scope {
        LimitScope::All => "all".to_owned(),
        LimitScope::Queue(name) => format!("queue:{name}"),
        LimitScope::Kind(name) => format!("kind:{name}"),
        LimitScope::Group(name) => format!("group:{name}"),
        LimitScope::Groups(prefix) => format!("groups:{prefix}"),
    }
}

/// Returns a write with the put of its guard. The content is random, so that each put makes another
/// version of the guard.
fn both(write: &Write, guard: &str) -> onward_store::Result<Write> {
    let content = fastrand::u128(..).to_le_bytes().to_vec();
    let put = PutDocument { expect: ExpectedVersion::Any, ..PutDocument::new(Name::new(COLLECTION)?, guard, content) };
    Ok(Write::All(vec![write.clone(), Write::PutDocument(Box::new(put))]))
}

/// Returns the outcome that a write would have had without its guard.
fn own(outcome: Outcome, is_guarded: bool) -> Outcome {
    match outcome {
        Outcome::All(mut outcomes) if is_guarded && !outcomes.is_empty() => outcomes.swap_remove(0),
        Outcome::Refused(Refusal::InAll { refusal, .. }) if is_guarded => Outcome::Refused(*refusal),
        outcome => outcome,
    }
}
