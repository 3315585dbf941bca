//! The verdict of one dependency.

use crate::workflow::run::state::step_state::StepState;
use crate::workflow::template::Condition;

/// The verdict of a dependency on the step that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The step that is named has ended as the condition requires.
    Yes,
    /// The step that is named can no longer end as the condition requires.
    Never,
    /// The step with the dependency is not wanted.
    Skip,
    /// The step that is named was not wanted, so the dependency decides nothing.
    Void,
    /// The step that is named has not ended.
    Wait,
}

/// Returns the verdict of a condition by the state of the step that it names. `is_chosen` is true
/// if that step chose the one that has the dependency.
pub(super) fn verdict(condition: Condition, state: StepState, is_forgiven: bool, is_chosen: bool) -> Verdict {
    use Condition::{Chosen, Completed, Ended, Failed};
    use StepState as State;
    match (condition, state) {
        (_, State::Pending | State::Open | State::Waiting) => Verdict::Wait,
        (Ended, _) => Verdict::Yes,
        (Completed, State::Completed) => Verdict::Yes,
        (Completed, State::Skipped) => Verdict::Void,
        (Completed, bad) => {
            if bad.is_bad() && is_forgiven {
                Verdict::Yes
            } else {
                Verdict::Never
            }
        }
        (Failed, ended) => {
            if ended.is_bad() {
                Verdict::Yes
            } else {
                Verdict::Skip
            }
        }
        (Chosen, State::Completed) => {
            if is_chosen {
                Verdict::Yes
            } else {
                Verdict::Skip
            }
        }
        (Chosen, State::Skipped) => Verdict::Skip,
        (Chosen, bad) => {
            if bad.is_bad() && is_forgiven {
                Verdict::Skip
            } else {
                Verdict::Never
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Never, Skip, Void, Wait, Yes};
    use super::*;

    #[test]
    fn verdicts_are_those_of_the_join_rule() {
        use StepState::{Cancelled, Completed, Dead, Open, Pending, Skipped, Unreached, Waiting};
        // Completed, bad, bad and forgiven, skipped, cancelled, unreached, not ended.
        let ends =
            [(Completed, false), (Dead, false), (Dead, true), (Skipped, false), (Cancelled, false), (Unreached, true)];
        let rows = [
            (Condition::Completed, true, [Yes, Never, Yes, Void, Never, Never]),
            (Condition::Failed, true, [Skip, Yes, Yes, Skip, Skip, Skip]),
            (Condition::Ended, false, [Yes; 6]),
            (Condition::Chosen, true, [Yes, Never, Skip, Skip, Never, Never]),
            (Condition::Chosen, false, [Skip, Never, Skip, Skip, Never, Never]),
        ];
        for (condition, is_chosen, expected) in rows {
            let verdicts = ends.map(|(state, is_forgiven)| verdict(condition, state, is_forgiven, is_chosen));
            assert_eq!(verdicts, expected, "{condition:?} {is_chosen}");
            assert!([Pending, Open, Waiting].iter().all(|state| verdict(condition, *state, false, is_chosen) == Wait));
        }
    }
}
