//! The reasons why a step did not run.

use minicbor::{Decode, Encode};

use crate::workflow::template::Template;

/// The reason why a step was skipped, unreached or ended by something else than itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Reason {
    /// Its `if` was false.
    #[n(1)]
    Condition,
    /// The chooser chose others.
    #[n(2)]
    NotChosen {
        #[n(0)]
        by: u32,
    },
    /// A step that it needs ended in another way.
    #[n(3)]
    Dependency {
        #[n(0)]
        step: u32,
    },
    /// All steps that it depends on were skipped.
    #[n(4)]
    NothingCame,
    /// The run was stopping.
    #[n(5)]
    Stopping,
    /// The run was being cancelled.
    #[n(6)]
    Cancelled,
    /// A person or a program decided it.
    #[n(7)]
    Action,
    /// The run took longer than its `timeout`.
    #[n(8)]
    Timeout,
    /// No answer came before the deadline.
    #[n(9)]
    Deadline,
    /// The run that was forked did it.
    #[n(10)]
    TakenOver,
    /// The start of the run selected other steps.
    #[n(11)]
    NotSelected,
}

impl Reason {
    /// Returns the reason as a sentence without its end.
    pub(crate) fn text(self, template: &Template) -> String {
        let name = |step: u32| template.steps.get(step as usize).map_or("?", |step| step.name.as_str());
        match self {
            Self::Condition => "`if` is false".to_owned(),
            Self::NotChosen { by } => format!("step `{}` did not choose it", name(by)),
            Self::Dependency { step } => format!("step `{}` ended in another way than it needs", name(step)),
            Self::NothingCame => "all steps that it depends on were skipped".to_owned(),
            Self::Stopping => "the run was stopping".to_owned(),
            Self::Cancelled => "the run was cancelled".to_owned(),
            Self::Action => "an action decided it".to_owned(),
            Self::Timeout => "the run took longer than its `timeout`".to_owned(),
            Self::Deadline => "no answer came before the deadline".to_owned(),
            Self::TakenOver => "taken over from the run that was forked".to_owned(),
            Self::NotSelected => "the start of the run selected other steps".to_owned(),
        }
    }
}
