//! Parsing of operators. [`primary`](super::primary) parses their operands.
//!
//! The parser calls itself, and counts how deep: a source cannot overflow the stack.

use super::bounds::EXPRESSION_DEPTH;
use super::error::{ExpressionError, Parsed};
use super::literal::Number;
use super::names::Reference;
use super::pattern::Pattern;
use super::shown::Excerpt;
use super::span::Span;
use super::syntax::{Infix, Kind, Node};
use super::tokens::{CLOSE, Lexer, OPEN, Token};
use super::value::Value;

/// A parser of one expression.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token that was read last and not taken yet.
    pub(super) token: Token<'a>,
    /// The place of that token.
    pub(super) span: Span,
    /// The end of the token before it.
    pub(super) end: usize,
    depth: usize,
    /// The variables of the macros around, from the outside in.
    pub(super) variables: Vec<&'a str>,
    pub(super) references: Vec<Reference>,
    pub(super) patterns: Vec<Pattern>,
}

impl<'a> Parser<'a> {
    /// Starts to parse the expression at a byte of a source.
    pub(super) fn new(source: &'a str, start: usize) -> Parsed<Self> {
        let mut lexer = Lexer::new(source, start);
        let (token, span) = lexer.next()?;
        let (variables, references, patterns) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { lexer, token, span, end: start, depth: 0, variables, references, patterns })
    }

    pub(super) fn source(&self) -> &'a str {
        self.lexer.source()
    }

    /// Parses an expression.
    pub(super) fn expression(&mut self) -> Parsed<Node> {
        self.deeper(Self::choice)
    }

    /// Parses one level deeper, unless that is too deep.
    fn deeper(&mut self, parse: fn(&mut Self) -> Parsed<Node>) -> Parsed<Node> {
        if self.depth == EXPRESSION_DEPTH {
            return Err(too_deep(self.span));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses `a ? b : c ? d : e` in a loop, so that a long choice is not a deep one.
    fn choice(&mut self) -> Parsed<Node> {
        let mut condition = self.operation()?;
        let start = condition.span;
        let mut cases = Vec::new();
        while self.take("?")? {
            let value = self.operation()?;
            self.expect(":")?;
            cases.push((condition, value));
            condition = self.operation()?;
        }
        if cases.is_empty() {
            return Ok(condition);
        }
        Ok(Node { kind: Kind::Choice(cases, Box::new(condition)), span: start.to(self.end) })
    }

    /// Parses operators between values. Operators that wait for one of higher precedence are on an
    /// explicit stack, so that a level of an expression takes few calls.
    fn operation(&mut self) -> Parsed<Node> {
        let mut operands = vec![self.unary()?];
        let mut waiting: Vec<Infix> = Vec::new();
        while let Some(infix) = self.infix() {
            while waiting.last().is_some_and(|last| last.binding() > infix.binding() || last.joins(infix)) {
                join_last(&mut operands, &mut waiting);
            }
            if matches!(waiting.last(), Some(last) if last.binding() == infix.binding()) {
                let message = "comparisons cannot follow each other; join them by `&&`, or put one in parentheses";
                return Err(ExpressionError::new(self.span, message));
            }
            self.advance()?;
            waiting.push(infix);
            operands.push(self.unary()?);
        }
        while !waiting.is_empty() {
            join_last(&mut operands, &mut waiting);
        }
        operands.pop().ok_or_else(|| self.unexpected("a value"))
    }

    /// Returns the token as an operator, if it is one.
    fn infix(&self) -> Option<Infix> {
        let (Token::Sign(sign) | Token::Name(sign)) = &self.token else { return None };
        Infix::named(sign)
    }

    fn unary(&mut self) -> Parsed<Node> {
        let start = self.span;
        if self.take("!")? {
            let operand = Box::new(self.deeper(Self::unary)?);
            return Ok(Node { kind: Kind::Not(operand), span: start.to(self.end) });
        }
        if !self.take("-")? {
            return self.primary();
        }
        if let Token::Number(number) = self.token {
            let value = negative(number).map_err(|message| ExpressionError::new(start.to(self.span.end), message))?;
            self.advance()?;
            return self.links(Node { kind: Kind::Constant(value), span: start.to(self.end) });
        }
        let operand = Box::new(self.deeper(Self::unary)?);
        Ok(Node { kind: Kind::Negate(operand), span: start.to(self.end) })
    }

    /// Takes the token and reads the next one.
    pub(super) fn advance(&mut self) -> Parsed<()> {
        self.end = self.span.end;
        (self.token, self.span) = self.lexer.next()?;
        Ok(())
    }

    /// Consumes the token if it is a sign, and returns true if it was.
    pub(super) fn take(&mut self, sign: &'static str) -> Parsed<bool> {
        let found = self.token == Token::Sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Consumes a sign that must be there.
    pub(super) fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        if self.take(sign)? { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    /// Ends the parsing where the source ends.
    pub(super) fn end(&self) -> Parsed<()> {
        if self.token == Token::End { Ok(()) } else { Err(self.unexpected("an operator or the end")) }
    }

    /// Ends the parsing at `}}`, and returns the byte behind it.
    pub(super) fn close(&self, open: Span) -> Parsed<usize> {
        if self.source()[self.span.start..].starts_with(CLOSE) {
            return Ok(self.span.start + CLOSE.len());
        }
        match self.token {
            Token::End => Err(ExpressionError::new(open, format!("`{OPEN}` needs a `{CLOSE}` behind its expression"))),
            _ => Err(self.unexpected(&format!("an operator or `{CLOSE}`"))),
        }
    }

    /// Returns the error of a token that cannot stand where it is.
    pub(super) fn unexpected(&self, wanted: &str) -> Box<ExpressionError> {
        let remedy = match self.token {
            Token::Name("and") => "; write `&&`",
            Token::Name("or") => "; write `||`",
            Token::Name("not") => "; write `!`",
            _ => "",
        };
        let found = match self.token {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", Excerpt(self.span.of(self.source()))),
        };
        ExpressionError::new(self.span, format!("expected {wanted}, and there is {found}{remedy}"))
    }
}

fn too_deep(span: Span) -> Box<ExpressionError> {
    let message = format!("the expression nests more than {EXPRESSION_DEPTH} levels; compute parts of it in steps");
    ExpressionError::new(span, message)
}

/// Joins the last two operands by the last operator.
fn join_last(operands: &mut Vec<Node>, waiting: &mut Vec<Infix>) {
    let Some(infix) = waiting.pop() else { return };
    if let (Some(right), Some(left)) = (operands.pop(), operands.pop()) {
        operands.push(join(left, infix, right));
    }
}

/// Joins two operands. A chain of one operator stays one list.
fn join(left: Node, infix: Infix, right: Node) -> Node {
    let span = left.span.to(right.span.end);
    let kind = match infix {
        Infix::All => Kind::All(match left {
            Node { kind: Kind::All(operands), .. } => extended(operands, right),
            left => vec![left, right],
        }),
        Infix::Any => Kind::Any(match left {
            Node { kind: Kind::Any(operands), .. } => extended(operands, right),
            left => vec![left, right],
        }),
        Infix::Compute(operator) => match left.kind {
            Kind::Arithmetic(first, rest) if rest.first().is_some_and(|(other, _)| other.is_like(operator)) => {
                Kind::Arithmetic(first, extended(rest, (operator, right)))
            }
            _ => Kind::Arithmetic(Box::new(left), vec![(operator, right)]),
        },
        Infix::Compare(comparison) => Kind::Compare(comparison, Box::new(left), Box::new(right)),
    };
    Node { kind, span }
}

fn extended<T>(mut list: Vec<T>, last: T) -> Vec<T> {
    list.push(last);
    list
}

/// Returns the value of a number. A number that no int can hold is a uint, as in JSON.
pub(super) fn positive(number: Number) -> Value {
    match number {
        Number::Whole(number) => Value::from(number),
        Number::Unsigned(number) => Value::Uint(number),
        Number::Double(number) => Value::Double(number),
    }
}

/// Returns the value of a number after a `-`. The lowest int has no positive counterpart.
fn negative(number: Number) -> Result<Value, &'static str> {
    match number {
        Number::Whole(number) => {
            0_i64.checked_sub_unsigned(number).map(Value::Int).ok_or("the number is beyond an int (64 bits)")
        }
        Number::Unsigned(_) => Err("a uint is never negative; leave out the `u`"),
        Number::Double(number) => Ok(Value::Double(-number)),
    }
}
