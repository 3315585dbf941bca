//! The state of a task that depends on others, at its submission and when one of them ends.
//!
//! A dependency is a task that was accepted before: a number that exists in the store, or an
//! earlier submit of the same batch of writes. Dependencies never change afterwards. Each one leads
//! from a higher number to a lower one, so no cycle can arise. [`order`] sorts a batch of any order
//! in this way, and rejects a batch with a cycle.

use crate::api::dependency::{Dependency, OnDependencyFailure};
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{NewTask, TaskId, TaskState};

/// The state in which a dependency ended; `None` if it was removed before its end.
pub type Ended = Option<TaskState>;

/// A dependency at the time of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependent {
    /// The task is live.
    On(TaskId),
    /// The task has ended, or was removed.
    Ended(TaskId, Ended),
}

/// The state of a new task after its submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InitialState {
    /// No dependency holds the task back.
    Free,
    /// The task waits for these tasks: each once, by number.
    Blocked(Vec<TaskId>),
    /// The task ends at once in this state because of this dependency.
    Ends(TaskState, TaskId, Ended),
}

/// Decides the state of a new task. If several dependencies did not complete, the first one in the
/// list decides.
#[must_use]
pub fn at_submission(dependencies: &[Dependent], on_failure: OnDependencyFailure) -> InitialState {
    let mut open = Vec::new();
    for dependency in dependencies {
        match *dependency {
            Dependent::On(task) => open.push(task),
            Dependent::Ended(task, ended) => {
                if let Some(state) = end_of_dependent(ended, on_failure) {
                    return InitialState::Ends(state, task, ended);
                }
            }
        }
    }
    open.sort_unstable();
    open.dedup();
    if open.is_empty() { InitialState::Free } else { InitialState::Blocked(open) }
}

/// Returns the state in which a task ends because of the end of a dependency; `None` if it
/// continues.
#[must_use]
pub fn end_of_dependent(ended: Ended, on_failure: OnDependencyFailure) -> Option<TaskState> {
    match on_failure {
        _ if ended == Some(TaskState::Completed) => None,
        OnDependencyFailure::Ignore => None,
        OnDependencyFailure::Cancel => Some(TaskState::Cancelled),
        OnDependencyFailure::Fail => Some(TaskState::Failed),
    }
}

/// Returns the error of a task that ended because of a dependency.
#[must_use]
pub fn error(dependency: TaskId, ended: Ended) -> String {
    match ended {
        Some(state) => format!("task {dependency}, on which it depends, ended as {state}"),
        None => format!("task {dependency}, on which it depends, was removed"),
    }
}

/// Returns the submit with its positions replaced by task numbers; `None` if it has no positions.
/// `before` are the outcomes of the earlier writes.
///
/// # Errors
/// [`Refusal::Invalid`] for a position that is not an earlier submit.
pub fn resolved(new: &NewTask, before: &[Outcome]) -> Result<Option<NewTask>, Refusal> {
    let is_position = |dependency: &Dependency| matches!(dependency, Dependency::Position(_));
    if !new.depends_on.tasks.iter().any(is_position) {
        return Ok(None);
    }
    let mut new = new.clone();
    for dependency in &mut new.depends_on.tasks {
        if let Dependency::Position(position) = *dependency {
            let Some(Outcome::Submitted(submitted)) = before.get(position) else { return Err(no_position(position)) };
            *dependency = Dependency::Task(submitted.id());
        }
    }
    Ok(Some(new))
}

/// Returns the refusal of a position that is not an earlier submit of the batch.
#[must_use]
pub fn no_position(position: usize) -> Refusal {
    Refusal::Invalid(format!(
        "a task depends on number {position} of the writes that are done as one with it, which is not a submit before it; \
         name an earlier one, or give the number of a task"
    ))
}

/// Returns the positions of the tasks of a batch in an order in which they can be submitted: each
/// task after those on which it depends. Tasks that are free to go keep the order of the batch.
///
/// # Errors
/// [`Refusal::Invalid`] for a position beyond the batch, and for a cycle, which the message names.
pub fn order(batch: &[NewTask]) -> Result<Vec<usize>, Refusal> {
    let mut order = Order { batch, marks: vec![Visit::New; batch.len()], path: Vec::new(), done: Vec::new() };
    (0..batch.len()).try_for_each(|position| order.visit(position))?;
    Ok(order.done)
}

/// Returns whether the tasks of a batch can be submitted in their order.
#[must_use]
pub fn is_in_order(batch: &[NewTask]) -> bool {
    batch.iter().enumerate().all(|(position, new)| positions(new).all(|earlier| earlier < position))
}

/// The state of a task in the walk. A dependency on a task that is on the path closes a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    OnPath,
    Done,
}

/// A depth-first walk over a batch. It keeps an explicit path instead of recursing, because a chain
/// of dependencies may be as long as the batch.
struct Order<'a> {
    batch: &'a [NewTask],
    marks: Vec<Visit>,
    /// Each task on the path, and the index of its next dependency.
    path: Vec<(usize, usize)>,
    done: Vec<usize>,
}

impl Order<'_> {
    /// Visits a task and everything that it depends on.
    fn visit(&mut self, position: usize) -> Result<(), Refusal> {
        self.enter(position)?;
        while let Some((at, next)) = self.path.last_mut() {
            let at = *at;
            let dependency = self.batch.get(at).and_then(|new| new.depends_on.tasks.get(*next)).copied();
            *next += 1;
            match dependency {
                Some(Dependency::Position(position)) => self.enter(position)?,
                Some(Dependency::Task(_)) => {}
                None => self.leave(at),
            }
        }
        Ok(())
    }

    /// Puts a task on the path, unless its walk is done. Fails if it is on the path already, which
    /// is a cycle.
    fn enter(&mut self, position: usize) -> Result<(), Refusal> {
        match self.marks.get(position) {
            None => Err(no_position(position)),
            Some(Visit::OnPath) => Err(self.cycle(position)),
            Some(Visit::Done) => Ok(()),
            Some(Visit::New) => {
                self.marks[position] = Visit::OnPath;
                self.path.push((position, 0));
                Ok(())
            }
        }
    }

    /// Takes the last task off the path: all of its dependencies come before it.
    fn leave(&mut self, position: usize) {
        self.path.pop();
        self.marks[position] = Visit::Done;
        self.done.push(position);
    }

    /// Returns the refusal of a cycle, which names its tasks.
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

/// The largest number of tasks of a cycle that the message names.
const SHOWN: usize = 16;

/// Returns the dependencies of a task on other tasks of its batch.
fn positions(new: &NewTask) -> impl Iterator<Item = usize> {
    new.depends_on.tasks.iter().filter_map(|dependency| match dependency {
        Dependency::Position(position) => Some(*position),
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
            let depends_on = Dependencies::on_positions(positions.iter().copied());
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
            Dependent::Ended(TaskId(3), Some(TaskState::Dead)),
            Dependent::Ended(TaskId(2), Some(TaskState::Expired)),
        ];
        let expected = InitialState::Ends(TaskState::Failed, TaskId(3), Some(TaskState::Dead));
        assert_eq!(at_submission(&dependencies, OnDependencyFailure::Fail), expected);
    }

    #[test]
    fn what_failed_is_passed_over_where_that_is_ignored() {
        let dependencies = [Dependent::Ended(TaskId(3), None), Dependent::On(TaskId(9)), Dependent::On(TaskId(9))];
        let expected = InitialState::Blocked(vec![TaskId(9)]);
        assert_eq!(at_submission(&dependencies, OnDependencyFailure::Ignore), expected);
    }

    proptest! {
        /// For any graph, the result is a valid order, or a cycle that makes every order invalid.
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
