//! The acknowledged facts, and what must hold after a power cut because of them.

use std::collections::BTreeMap;

use onward_store::{Name, TaskId, TaskState};

/// The subject of a fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Task(TaskId),
    Queue(Name),
}

/// A fact that holds until another change of its subject is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    /// The task exists, in any state.
    Submitted,
    /// The task is in this state.
    Is(TaskState),
    /// The queue is paused, or is not.
    Paused(bool),
}

/// The facts that the reply to one call acknowledged.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    pub(super) facts: Vec<(Subject, Fact)>,
    /// The number of operations when the call was made.
    pub(super) asked: usize,
    /// The number of operations when the reply came.
    pub(super) given: usize,
}

/// The facts that may hold for each subject after a cut at a moment: the last acknowledged one, or
/// any requested since. A change may have happened even if its reply had not come.
#[derive(Debug, Default)]
pub(super) struct Expected(BTreeMap<Subject, Vec<Fact>>);

impl Expected {
    /// Returns the facts that may hold at a moment. Calls about one subject were made one after the
    /// other, in whatever order the callers received their replies.
    pub(super) fn at(moment: usize, acknowledgements: &[Acknowledgement]) -> Self {
        let mut asked: Vec<&Acknowledgement> = acknowledgements.iter().filter(|call| call.asked < moment).collect();
        asked.sort_by_key(|call| call.asked);
        let mut facts: BTreeMap<Subject, Vec<Fact>> = BTreeMap::new();
        for call in asked {
            for (subject, fact) in &call.facts {
                if call.given <= moment {
                    facts.insert(subject.clone(), vec![*fact]);
                } else if let Some(facts) = facts.get_mut(subject) {
                    facts.push(*fact);
                }
            }
        }
        Self(facts)
    }

    /// Returns the subjects for which none of the possible facts holds.
    pub(super) fn broken(&self, holds: impl Fn(&Subject, Fact) -> bool) -> Vec<Subject> {
        let broken = self.0.iter().filter(|(subject, facts)| !facts.iter().any(|fact| holds(subject, *fact)));
        broken.map(|(subject, _)| subject.clone()).collect()
    }

    pub(super) fn has_task(&self, task: TaskId) -> bool {
        self.0.contains_key(&Subject::Task(task))
    }

    /// Returns whether no worker may run the task, because it has certainly ended.
    pub(super) fn has_ended(&self, task: TaskId) -> bool {
        self.all(&Subject::Task(task), |fact| matches!(fact, Fact::Is(state) if state.is_ended()))
    }

    /// Returns whether no worker may run the tasks of the queue.
    pub(super) fn is_paused(&self, queue: &Name) -> bool {
        self.all(&Subject::Queue(queue.clone()), |fact| fact == Fact::Paused(true))
    }

    fn all(&self, subject: &Subject, holds: impl Fn(Fact) -> bool) -> bool {
        self.0.get(subject).is_some_and(|facts| facts.iter().all(|fact| holds(*fact)))
    }
}

mod tests {
    use super::*;

    fn paused(paused: bool, asked: usize, given: usize) -> Acknowledgement {
        let queue = Subject::Queue("held".parse().expect("the name is valid"));
        Acknowledgement { facts: vec![(queue, Fact::Paused(paused))], asked, given }
    }

    /// Returns whether a store is wrong if it has the queue paused, or not paused.
    fn is_broken(found: bool, moment: usize, calls: &[Acknowledgement]) -> bool {
        !Expected::at(moment, calls).broken(|_, fact| fact == Fact::Paused(found)).is_empty()
    }

    #[test]
    fn what_was_acknowledged_last_has_to_hold() {
        let calls = [paused(true, 0, 1), paused(false, 2, 3)];
        assert!(is_broken(true, 3, &calls) && !is_broken(false, 3, &calls));
    }

    #[test]
    fn what_was_asked_for_and_not_answered_may_have_happened() {
        let calls = [paused(true, 0, 1), paused(false, 1, 3)];
        assert!(!is_broken(true, 2, &calls) && !is_broken(false, 2, &calls));
    }

    #[test]
    fn what_was_not_asked_for_yet_has_not_happened() {
        let calls = [paused(true, 0, 1), paused(false, 2, 3)];
        assert!(is_broken(false, 2, &calls));
    }
}
