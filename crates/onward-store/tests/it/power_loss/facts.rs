//! What somebody was told, and so what has to hold after a power cut.

use std::collections::BTreeMap;

use onward_store::{Name, TaskId, TaskState};

/// What a fact is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Task(TaskId),
    Queue(Name),
}

/// What holds of it until something else about it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    /// The task is there, in whatever state.
    Submitted,
    /// The task is in this state.
    Is(TaskState),
    /// The queue is paused, or is not.
    Paused(bool),
}

/// What one call was told had been done.
#[derive(Debug)]
pub(super) struct Acknowledgement {
    pub(super) facts: Vec<(Subject, Fact)>,
    /// How many operations there had been when the call was made.
    pub(super) asked: usize,
    /// And when the answer came.
    pub(super) given: usize,
}

/// What may be found of each subject after a cut at a moment: what was acknowledged of it last, or
/// anything that was asked for since, for a change whose answer had not come may have happened.
#[derive(Debug, Default)]
pub(super) struct Expected(BTreeMap<Subject, Vec<Fact>>);

impl Expected {
    /// Calls about one subject were asked for one after the other, whatever the order in which
    /// those who had asked saw their answers.
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

    /// The subjects of which none of what may be found holds.
    pub(super) fn broken(&self, holds: impl Fn(&Subject, Fact) -> bool) -> Vec<Subject> {
        let broken = self.0.iter().filter(|(subject, facts)| !facts.iter().any(|fact| holds(subject, *fact)));
        broken.map(|(subject, _)| subject.clone()).collect()
    }

    pub(super) fn has_task(&self, task: TaskId) -> bool {
        self.0.contains_key(&Subject::Task(task))
    }

    /// Whether nobody may run the task: it has ended for sure.
    pub(super) fn has_ended(&self, task: TaskId) -> bool {
        self.all(&Subject::Task(task), |fact| matches!(fact, Fact::Is(state) if state.is_ended()))
    }

    /// Whether nobody may run what is in the queue.
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

    /// Whether a store is wrong in which the queue is paused, or is not.
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
