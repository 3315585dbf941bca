//! When a task that depends on others may start, and what becomes of it if it may not.
//!
//! A dependency is a task that was accepted before: a number that the store knows, or an earlier
//! member of the same batch. It never changes afterwards, so each leads from a higher number to a
//! lower one, and no cycle can be made. A batch in any order is brought into one that holds this by
//! [`order`], which refuses what has none.

use crate::api::dependency::{Dependency, OnDependencyFailure};
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{NewTask, TaskId, TaskState};

/// How a task ended that another depends on; `None` if it was removed before it had ended.
pub type Ended = Option<TaskState>;

/// A dependency at the moment of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependent {
    /// It is live.
    On(TaskId),
    /// It is over.
    Settled(TaskId, Ended),
}

/// Where a new task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing holds it up.
    Free,
    /// It waits for these tasks, each named once, in the order of their numbers.
    Blocked(Vec<TaskId>),
    /// It ends at once, for the sake of this dependency.
    Ends(TaskState, TaskId, Ended),
}

/// Decides where a new task stands. Of several dependencies that did not complete, the first that
/// is named decides.
#[must_use]
pub fn at_submission(dependencies: &[Dependent], on_failure: OnDependencyFailure) -> Standing {
    let mut open = Vec::new();
    for dependency in dependencies {
        match *dependency {
            Dependent::On(task) => open.push(task),
            Dependent::Settled(task, ended) => {
                if let Some(state) = end_of_dependent(ended, on_failure) {
                    return Standing::Ends(state, task, ended);
                }
            }
        }
    }
    open.sort_unstable();
    open.dedup();
    if open.is_empty() { Standing::Free } else { Standing::Blocked(open) }
}

/// The state in which a task ends because of how one that it depends on ended; `None` if it goes
/// on.
#[must_use]
pub fn end_of_dependent(ended: Ended, on_failure: OnDependencyFailure) -> Option<TaskState> {
    match on_failure {
        _ if ended == Some(TaskState::Completed) => None,
        OnDependencyFailure::Ignore => None,
        OnDependencyFailure::Cancel => Some(TaskState::Cancelled),
        OnDependencyFailure::Fail => Some(TaskState::Failed),
    }
}

/// What a task says that ended because of another.
#[must_use]
pub fn error(dependency: TaskId, ended: Ended) -> String {
    match ended {
        Some(state) => format!("task {dependency}, on which it depends, ended as {state}"),
        None => format!("task {dependency}, on which it depends, was removed"),
    }
}

/// A submit with the positions among its dependencies replaced by the tasks that stand for them;
/// `None` if it has no positions. `before` are the outcomes of the members before it.
///
/// # Errors
/// [`Refusal::Invalid`] for a position that is not an earlier submit.
pub fn resolved(new: &NewTask, before: &[Outcome]) -> Result<Option<NewTask>, Refusal> {
    let is_position = |dependency: &Dependency| matches!(dependency, Dependency::Member(_));
    if !new.depends_on.tasks.iter().any(is_position) {
        return Ok(None);
    }
    let mut new = new.clone();
    for dependency in &mut new.depends_on.tasks {
        if let Dependency::Member(position) = *dependency {
            let Some(Outcome::Submitted(submitted)) = before.get(position) else { return Err(no_member(position)) };
            *dependency = Dependency::Task(submitted.id());
        }
    }
    Ok(Some(new))
}

/// The refusal of a position that is not an earlier submit of the batch.
#[must_use]
pub fn no_member(position: usize) -> Refusal {
    Refusal::Invalid(format!(
        "a task depends on number {position} of the writes that are done as one with it, which is not a submit before it; \
         name an earlier one, or give the number of a task"
    ))
}

/// The order in which the tasks of a batch can be submitted, each behind those of the batch that it
/// depends on: their positions. Among tasks that are free to go, those that come first in the batch
/// come first.
///
/// # Errors
/// [`Refusal::Invalid`] for a position beyond the batch, and for a cycle, which it names.
pub fn order(batch: &[NewTask]) -> Result<Vec<usize>, Refusal> {
    let mut order = Order { batch, marks: vec![Mark::New; batch.len()], path: Vec::new(), done: Vec::new() };
    (0..batch.len()).try_for_each(|position| order.visit(position))?;
    Ok(order.done)
}

/// Whether the tasks of a batch can be submitted as they stand.
#[must_use]
pub fn is_in_order(batch: &[NewTask]) -> bool {
    batch.iter().enumerate().all(|(position, new)| members(new).all(|member| member < position))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    OnPath,
    Done,
}

/// A walk over a batch, depth first. It keeps its own path: a chain may be as long as a batch.
struct Order<'a> {
    batch: &'a [NewTask],
    marks: Vec<Mark>,
    /// Each task on the way, and which of its dependencies is next.
    path: Vec<(usize, usize)>,
    done: Vec<usize>,
}

impl Order<'_> {
    fn visit(&mut self, position: usize) -> Result<(), Refusal> {
        self.enter(position)?;
        while let Some((at, next)) = self.path.last_mut() {
            let at = *at;
            let member = self.batch.get(at).and_then(|new| new.depends_on.tasks.get(*next)).copied();
            *next += 1;
            match member {
                Some(Dependency::Member(member)) => self.enter(member)?,
                Some(Dependency::Task(_)) => {}
                None => self.leave(at),
            }
        }
        Ok(())
    }

    fn enter(&mut self, position: usize) -> Result<(), Refusal> {
        match self.marks.get(position) {
            None => Err(no_member(position)),
            Some(Mark::OnPath) => Err(self.cycle(position)),
            Some(Mark::Done) => Ok(()),
            Some(Mark::New) => {
                self.marks[position] = Mark::OnPath;
                self.path.push((position, 0));
                Ok(())
            }
        }
    }

    fn leave(&mut self, position: usize) {
        self.path.pop();
        self.marks[position] = Mark::Done;
        self.done.push(position);
    }

    fn cycle(&self, position: usize) -> Refusal {
        let start = self.path.iter().position(|(at, _)| *at == position).unwrap_or(0);
        let mut round: Vec<String> = self.path[start..].iter().take(SHOWN).map(|(at, _)| at.to_string()).collect();
        if self.path.len() - start > SHOWN {
            round.push("…".to_owned());
        }
        round.push(position.to_string());
        Refusal::Invalid(format!(
            "the tasks of the batch depend on each other in a circle ({}), so that none of them could ever start; \
             take one of these dependencies out",
            round.join(" → ")
        ))
    }
}

/// How many tasks of a cycle are named.
const SHOWN: usize = 16;

fn members(new: &NewTask) -> impl Iterator<Item = usize> {
    new.depends_on.tasks.iter().filter_map(|dependency| match dependency {
        Dependency::Member(position) => Some(*position),
        Dependency::Task(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::dependency::Dependencies;

    fn batch(dependencies: &[&[usize]]) -> Vec<NewTask> {
        let new = |positions: &&[usize]| {
            let depends_on = Dependencies::on_members(positions.iter().copied());
            NewTask { depends_on, ..NewTask::new("k").unwrap() }
        };
        dependencies.iter().map(new).collect()
    }

    #[test]
    fn a_batch_in_order_stays_as_it_is() {
        assert_eq!(order(&batch(&[&[], &[0], &[0, 1]])), Ok(vec![0, 1, 2]));
    }

    #[test]
    fn what_is_depended_on_goes_first() {
        assert_eq!(order(&batch(&[&[2], &[], &[1]])), Ok(vec![1, 2, 0]));
    }

    #[test]
    fn a_cycle_is_refused_and_named() {
        let refusal = order(&batch(&[&[], &[2], &[3], &[1]])).unwrap_err().to_string();
        assert!(refusal.contains("1 → 2 → 3 → 1"), "{refusal}");
    }

    #[test]
    fn a_task_that_depends_on_itself_is_a_cycle() {
        assert!(order(&batch(&[&[0]])).unwrap_err().to_string().contains("0 → 0"));
    }

    #[test]
    fn a_position_beyond_the_batch_is_refused() {
        assert!(order(&batch(&[&[1]])).unwrap_err().to_string().contains("number 1"));
    }

    #[test]
    fn a_very_long_chain_is_brought_into_order() {
        let chain: Vec<Vec<usize>> =
            (1..=100_000).map(|next| if next < 100_000 { vec![next] } else { vec![] }).collect();
        let chain: Vec<&[usize]> = chain.iter().map(Vec::as_slice).collect();
        assert_eq!(order(&batch(&chain)), Ok((0..100_000).rev().collect()));
    }

    #[test]
    fn the_first_dependency_that_did_not_complete_decides() {
        let dependencies = [
            Dependent::On(TaskId(9)),
            Dependent::Settled(TaskId(3), Some(TaskState::Dead)),
            Dependent::Settled(TaskId(2), Some(TaskState::Expired)),
        ];
        let expected = Standing::Ends(TaskState::Failed, TaskId(3), Some(TaskState::Dead));
        assert_eq!(at_submission(&dependencies, OnDependencyFailure::Fail), expected);
    }

    #[test]
    fn what_failed_is_passed_over_where_that_is_ignored() {
        let dependencies = [Dependent::Settled(TaskId(3), None), Dependent::On(TaskId(9)), Dependent::On(TaskId(9))];
        let expected = Standing::Blocked(vec![TaskId(9)]);
        assert_eq!(at_submission(&dependencies, OnDependencyFailure::Ignore), expected);
    }

    proptest! {
        /// Any graph: it is put into an order that holds, or it has a cycle and then really none
        /// exists.
        #[test]
        fn an_order_is_found_exactly_where_there_is_one(
            graph in (1usize..8).prop_flat_map(|size| proptest::collection::vec(proptest::collection::vec(0..size, 0..3), size))
        ) {
            let graph: Vec<&[usize]> = graph.iter().map(Vec::as_slice).collect();
            match order(&batch(&graph)) {
                Ok(order) => {
                    let place = |task: usize| order.iter().position(|at| *at == task);
                    prop_assert_eq!(order.len(), graph.len());
                    prop_assert!((0..graph.len()).all(|task| graph[task].iter().all(|on| place(*on) < place(task))));
                }
                Err(_) => {
                    let mut left: Vec<usize> = (0..graph.len()).collect();
                    while let Some(free) = left.iter().position(|task| graph[*task].iter().all(|on| !left.contains(on))) {
                        left.remove(free);
                    }
                    prop_assert!(!left.is_empty(), "there was an order");
                }
            }
        }
    }
}
