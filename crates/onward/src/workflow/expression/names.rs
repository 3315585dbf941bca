//! The names that expressions can use, and the references to them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A name at which an expression starts to read what a run knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The input of the run.
    Input,
    /// The constants of the template.
    Vars,
    /// The run itself.
    Run,
    /// The steps before the one that has the expression.
    Steps,
    /// The item of a step with `each`.
    Item,
    /// The number of that item, from 0.
    Index,
}

impl Root {
    /// Every root.
    pub const ALL: [Self; 6] = [Self::Input, Self::Vars, Self::Run, Self::Steps, Self::Item, Self::Index];

    /// Returns the name that stands in an expression.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Vars => "vars",
            Self::Run => "run",
            Self::Steps => "steps",
            Self::Item => "item",
            Self::Index => "index",
        }
    }

    /// Returns the root of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.as_str() == name)
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A field of `steps.S`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepField {
    /// The state, such as `completed`.
    State,
    /// The result; null if there is none.
    Result,
    /// The error, with its `message`; null if there is none.
    Error,
    /// The items of a step with `each` that ended badly.
    Failed,
    /// The number of items of a step with `each`.
    Count,
}

impl StepField {
    /// Every field.
    pub const ALL: [Self; 5] = [Self::State, Self::Result, Self::Error, Self::Failed, Self::Count];

    /// Returns the name that stands in an expression.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Result => "result",
            Self::Error => "error",
            Self::Failed => "failed",
            Self::Count => "count",
        }
    }

    /// Returns the field of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

impl fmt::Display for StepField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The fields of `run`.
pub const RUN_FIELDS: [&str; 5] = ["id", "name", "key", "started_at", "environment"];

/// A use of a [`Root`] in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// The root.
    pub root: Root,
    /// The step, if the root is [`Root::Steps`].
    pub step: Option<Arc<str>>,
    /// The first field, if the expression reads one by name: of the step, else of the root.
    pub field: Option<Arc<str>>,
    /// The bytes of the source that hold root, step and field.
    pub span: Range<usize>,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)?;
        let parts = self.step.iter().chain(&self.field);
        parts.into_iter().try_for_each(|part| write!(f, ".{part}"))
    }
}
