//! A field of a template, as the table describes it.

use super::table;

/// A map in a template whose keys are fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The template itself.
    Run,
    /// A step.
    Step,
    /// The value of `undo`.
    Undo,
    /// The value of `defaults`.
    Defaults,
    /// The value of `retry`.
    Retry,
    /// The value of `each`.
    Each,
    /// The value of `wait`.
    Wait,
    /// The value of `ask`.
    Ask,
    /// An item of `publishes`.
    Publish,
}

impl Place {
    /// Every place.
    pub(crate) const ALL: [Self; 9] = [
        Self::Run,
        Self::Step,
        Self::Undo,
        Self::Defaults,
        Self::Retry,
        Self::Each,
        Self::Wait,
        Self::Ask,
        Self::Publish,
    ];

    /// Returns the fields that may stand here.
    pub(crate) fn fields(self) -> &'static [Field] {
        match self {
            Self::Run => table::RUN,
            Self::Step => table::STEP,
            Self::Undo => table::UNDO,
            Self::Defaults => table::DEFAULTS,
            Self::Retry => table::RETRY,
            Self::Each => table::EACH,
            Self::Wait => table::WAIT,
            Self::Ask => table::ASK,
            Self::Publish => table::PUBLISH,
        }
    }

    /// Returns the field of a name.
    pub(crate) fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name == name)
    }

    /// Returns the kinds of which exactly one stands here.
    pub(crate) fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Step => table::STEP_KINDS,
            Self::Undo => table::WORK_KINDS,
            _ => &[],
        }
    }

    /// Returns the name of the place: the field that has it as its value.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "template",
            Self::Step => "step",
            Self::Undo => "undo",
            Self::Defaults => "defaults",
            Self::Retry => "retry",
            Self::Each => "each",
            Self::Wait => "wait",
            Self::Ask => "ask",
            Self::Publish => "publishes",
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldType,
    pub(crate) meaning: &'static str,
    /// The value that holds without the field; empty if there is none.
    pub(crate) default: &'static str,
    pub(crate) is_required: bool,
    /// True if an environment cannot change the field.
    pub(crate) is_fixed: bool,
    /// True if the field exists only in the steps of a list.
    pub(crate) is_listed: bool,
    /// The fields with which it cannot be combined.
    pub(crate) not_beside: &'static [FieldCondition],
    /// The fields of which at least one must be present with it, if there are any.
    pub(crate) needs: &'static [FieldCondition],
}

impl Field {
    pub(super) const fn new(name: &'static str, kind: FieldType, meaning: &'static str) -> Self {
        let (not_beside, needs): (&[FieldCondition], &[FieldCondition]) = (&[], &[]);
        let (default, is_required, is_fixed, is_listed) = ("", false, false, false);
        Self { name, kind, meaning, default, is_required, is_fixed, is_listed, not_beside, needs }
    }

    pub(super) const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub(super) const fn fixed(mut self) -> Self {
        self.is_fixed = true;
        self
    }

    pub(super) const fn listed(mut self) -> Self {
        self.is_listed = true;
        self
    }

    pub(super) const fn not_beside(mut self, fields: &'static [FieldCondition]) -> Self {
        self.not_beside = fields;
        self
    }

    pub(super) const fn needs(mut self, fields: &'static [FieldCondition]) -> Self {
        self.needs = fields;
        self
    }
}

/// A field, or a field with one of some values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldCondition {
    pub(crate) field: &'static str,
    /// The values; none for any.
    pub(crate) values: &'static [&'static str],
}

impl FieldCondition {
    pub(super) const fn field(field: &'static str) -> Self {
        Self { field, values: &[] }
    }

    pub(super) const fn value(field: &'static str, values: &'static [&'static str]) -> Self {
        Self { field, values }
    }
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldType {
    /// A text that is not empty.
    Text,
    /// `[ns/]name`, of small letters, digits, `_` and `-`.
    TemplateName,
    /// A name that an expression can write.
    StepName,
    /// A name of a kind, a queue, a signal or an event.
    Name,
    /// `NAME` or `NAME@VERSION`.
    WorkflowReference,
    /// A shell script, without `${{`.
    Script,
    /// A duration; zero only where it is allowed.
    Duration { zero: bool },
    /// A duration, or `forever`.
    KeepFor,
    /// A duration, a text of expressions that makes one, or `{until: E}`.
    Wait,
    /// A whole number within bounds.
    Integer { least: u64, most: u64 },
    /// A number of at least one.
    Factor,
    /// `true` or `false`.
    Boolean,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A number, `5%` or `all`.
    Tolerate,
    /// One expression.
    Expression,
    /// A text that may have expressions in it.
    TextTemplate,
    /// A value whose texts may have expressions in them.
    ValueTemplate,
    /// Environment variables, whose texts may have expressions in them.
    Variables,
    /// Tags, whose texts may have expressions in them.
    Tags,
    /// A JSON Schema.
    Schema,
    /// A map of constants.
    Constants,
    /// A list of steps.
    StepNames,
    /// A list of steps, each perhaps with a condition.
    Dependencies,
    /// A list of texts.
    Texts,
    /// A number of attempts, or a map.
    Retry,
    /// An expression for a list, or a map.
    Each,
    /// A map of further fields.
    Map(Place),
    /// A list of maps of further fields.
    Maps(Place),
    /// The steps.
    Steps,
    /// The environments.
    Environments,
}

impl FieldType {
    /// Returns true if the value is one expression.
    pub(crate) const fn is_expression(self) -> bool {
        matches!(self, Self::Expression | Self::Each)
    }
}
