//! The syntax tree of an expression. A chain of one operator is a list, so that a long sum is not a
//! deep tree.

use std::sync::Arc;

use super::functions::{Function, Macro, Method};
use super::names::{Root, StepField};
use super::span::Span;
use super::value::Value;

/// A part of an expression that has a value.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// The sort of a [`Node`].
#[derive(Debug)]
pub(super) enum Kind {
    Constant(Value),
    /// The variable of a macro, by the number of macros around it.
    Variable(usize),
    Root(Root),
    /// `steps.S`.
    Step(Arc<str>),
    /// `steps.S.field`.
    StepField(Arc<str>, StepField),
    /// Operands of `&&`.
    All(Vec<Node>),
    /// Operands of `||`.
    Any(Vec<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    Arithmetic(Box<Node>, Vec<(Operator, Node)>),
    /// Conditions with their values, and the value if none is true.
    Choice(Vec<(Node, Node)>, Box<Node>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Call(Function, Vec<Node>),
    /// `has(base.field)`.
    Has(Box<Node>, Arc<str>),
    /// `has(steps.S.field)`.
    HasStepField(Arc<str>, StepField),
    /// A value and what is read of it, one after the other.
    Chain(Box<Node>, Vec<Link>),
}

/// A part of a chain, which is applied to the value before it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) kind: LinkKind,
    pub(super) span: Span,
}

/// The sort of a [`Link`].
#[derive(Debug)]
pub(super) enum LinkKind {
    Field(Arc<str>),
    Index(Node),
    Call(Method, Vec<Node>),
    /// `matches` with a constant pattern, by its number in the expression.
    Matches(usize),
    Each(Macro, Box<Node>),
}

/// An operator between two values that compares them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
}

impl Comparison {
    /// Every comparison with its sign.
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<", Self::Less),
        ("<=", Self::AtMost),
        (">", Self::Greater),
        (">=", Self::AtLeast),
        ("in", Self::In),
    ];

    /// Returns the sign.
    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find_map(|(sign, other)| (other == self).then_some(sign)).unwrap_or_default()
    }
}

/// An operator between two values that computes a third.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// Every operator with its sign.
    const ALL: [(&'static str, Self); 5] =
        [("+", Self::Add), ("-", Self::Subtract), ("*", Self::Multiply), ("/", Self::Divide), ("%", Self::Remainder)];

    /// Returns the sign.
    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find_map(|(sign, other)| (other == self).then_some(sign)).unwrap_or_default()
    }

    /// Returns true if the right side must not be zero.
    pub(super) fn divides(self) -> bool {
        matches!(self, Self::Divide | Self::Remainder)
    }

    /// Returns true if both operators are additive, or both multiplicative.
    pub(super) fn is_like(self, other: Self) -> bool {
        self.is_of_sums() == other.is_of_sums()
    }

    fn is_of_sums(self) -> bool {
        matches!(self, Self::Add | Self::Subtract)
    }
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Infix {
    Any,
    All,
    Compare(Comparison),
    Compute(Operator),
}

impl Infix {
    /// Returns the operator of a sign.
    pub(super) fn named(sign: &str) -> Option<Self> {
        match sign {
            "||" => Some(Self::Any),
            "&&" => Some(Self::All),
            _ => {
                let compare = find(&Comparison::ALL, sign).map(Self::Compare);
                compare.or_else(|| find(&Operator::ALL, sign).map(Self::Compute))
            }
        }
    }

    /// Returns the precedence of the operator.
    pub(super) fn binding(self) -> u8 {
        match self {
            Self::Any => 1,
            Self::All => 2,
            Self::Compare(_) => 3,
            Self::Compute(operator) if operator.is_of_sums() => 4,
            Self::Compute(_) => 5,
        }
    }

    /// Returns true if another operator may follow this one and take its result.
    pub(super) fn joins(self, next: Self) -> bool {
        self.binding() == next.binding() && !matches!(self, Self::Compare(_))
    }
}

fn find<T: Copy>(signs: &[(&str, T)], sign: &str) -> Option<T> {
    signs.iter().find_map(|(other, found)| (*other == sign).then_some(*found))
}
