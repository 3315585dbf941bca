//! Parsing of values, and of the accesses to them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::error::{ExpressionError, Parsed};
use super::functions::{Function, HAS, Macro, Method, function_names, method_names};
use super::names::{RUN_FIELDS, Reference, Root, StepField};
use super::parser::{Parser, positive};
use super::pattern::Pattern;
use super::shown::Excerpt;
use super::span::Span;
use super::syntax::{Kind, Link, LinkKind, Node};
use super::tokens::Token;
use super::value::Value;
use crate::workflow::nearest::{did_you_mean, nearest};

/// Names that cannot be names of variables.
const RESERVED: [&str; 8] = ["true", "false", "null", "in", "input", "vars", "run", "steps"];

/// The error of `steps` alone.
const WITHOUT_STEP: &str = "`steps` needs the name of one step behind it, as in steps.build.result";

impl<'a> Parser<'a> {
    /// Parses a value and the accesses to it.
    pub(super) fn primary(&mut self) -> Parsed<Node> {
        let base = self.atom()?;
        self.links(base)
    }

    fn atom(&mut self) -> Parsed<Node> {
        let start = self.span;
        let kind = match std::mem::replace(&mut self.token, Token::End) {
            Token::Number(number) => self.constant(positive(number))?,
            Token::Text(text) => self.constant(Value::from(text))?,
            Token::Name("true") => self.constant(Value::Bool(true))?,
            Token::Name("false") => self.constant(Value::Bool(false))?,
            Token::Name("null") => self.constant(Value::Null)?,
            Token::Name(name) if name != "in" => return self.name(name),
            Token::Sign("(") => return self.parentheses(),
            Token::Sign("[") => {
                self.advance()?;
                Kind::List(self.arguments("]")?)
            }
            Token::Sign("{") => {
                self.advance()?;
                Kind::Map(self.entries()?)
            }
            token => {
                self.token = token;
                return Err(self.unexpected("a value"));
            }
        };
        Ok(Node { kind, span: start.to(self.end) })
    }

    fn constant(&mut self, value: Value) -> Parsed<Kind> {
        self.advance()?;
        Ok(Kind::Constant(value))
    }

    fn parentheses(&mut self) -> Parsed<Node> {
        let start = self.span;
        self.advance()?;
        let inner = self.expression()?;
        self.expect(")")?;
        Ok(Node { kind: inner.kind, span: start.to(self.end) })
    }

    /// Parses expressions up to a closing sign.
    fn arguments(&mut self, closing: &'static str) -> Parsed<Vec<Node>> {
        let mut arguments = Vec::new();
        if self.take(closing)? {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.take(",")? {
                break;
            }
        }
        match self.token {
            Token::Sign(sign) if sign == closing => self.advance()?,
            _ => return Err(self.unexpected(&format!("`,` or `{closing}`"))),
        }
        Ok(arguments)
    }

    /// Parses the entries of a map and its `}`.
    fn entries(&mut self) -> Parsed<Vec<(Node, Node)>> {
        let mut entries = Vec::new();
        if self.take("}")? {
            return Ok(entries);
        }
        loop {
            let key = self.key()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if !self.take(",")? {
                break;
            }
        }
        match self.token {
            Token::Sign("}") => self.advance()?,
            _ => return Err(self.unexpected("`,` or `}`")),
        }
        Ok(entries)
    }

    fn key(&mut self) -> Parsed<Node> {
        match self.token {
            Token::Name(name) if Root::named(name).is_none() && self.variable(name).is_none() => {
                match Function::named(name) {
                    Some(_) => self.expression(),
                    None => {
                        Err(ExpressionError::new(self.span, format!("a key is a text; write \"{}\"", Excerpt(name))))
                    }
                }
            }
            _ => self.expression(),
        }
    }

    /// Parses a call, or the use of a variable or a root.
    fn name(&mut self, name: &'a str) -> Parsed<Node> {
        let span = self.span;
        self.advance()?;
        if self.token == Token::Sign("(") {
            return self.call(name, span);
        }
        if let Some(number) = self.variable(name) {
            return Ok(Node { kind: Kind::Variable(number), span });
        }
        match Root::named(name) {
            Some(Root::Steps) => self.step(span),
            Some(root) => {
                self.references.push(Reference { root, step: None, field: None, span: span.into() });
                Ok(Node { kind: Kind::Root(root), span })
            }
            None => Err(self.unknown_name(name, span)),
        }
    }

    fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().rposition(|variable| *variable == name)
    }

    fn unknown_name(&self, name: &str, span: Span) -> Box<ExpressionError> {
        let mut known: Vec<&str> = Root::ALL.map(Root::as_str).to_vec();
        known.extend(&self.variables);
        let shown = Excerpt(name);
        let remedy = if self.source()[..span.start].ends_with('-') {
            "; a field with `-` in its name is read by [\"…\"]".to_owned()
        } else if let Some(candidate) = nearest(name, known.iter().copied()) {
            format!("; did you mean `{candidate}`?")
        } else if function_names().any(|function| function == name) {
            format!("; the function is called as {name}(…)")
        } else {
            format!("; there are {}; a text stands in quotes: '{shown}'", known.join(", "))
        };
        ExpressionError::new(span, format!("unknown name `{shown}`{remedy}"))
    }

    /// Parses `.S` or `.S.field` behind `steps`.
    fn step(&mut self, steps: Span) -> Parsed<Node> {
        if !self.take(".")? {
            return Err(ExpressionError::new(steps, WITHOUT_STEP));
        }
        let (step, _) = self.field_name()?;
        let step: Arc<str> = step.into();
        let mut field = None;
        if self.take(".")? {
            let (name, span) = self.field_name()?;
            let known = StepField::ALL.map(StepField::as_str);
            field = Some(StepField::named(name).ok_or_else(|| unknown_field(name, span, "a step", &known))?);
        }
        let span = steps.to(self.end);
        self.references.push(Reference {
            root: Root::Steps,
            step: Some(step.clone()),
            field: field.map(|field| field.as_str().into()),
            span: span.into(),
        });
        let kind = match field {
            Some(field) => Kind::StepField(step, field),
            None => Kind::Step(step),
        };
        Ok(Node { kind, span })
    }

    /// Reads the name after a `.`. Every word is allowed there.
    fn field_name(&mut self) -> Parsed<(&'a str, Span)> {
        let (Token::Name(name), span) = (&self.token, self.span) else {
            return Err(self.unexpected("a name behind `.`"));
        };
        let name = *name;
        self.advance()?;
        Ok((name, span))
    }

    /// Parses all accesses to a value.
    pub(super) fn links(&mut self, base: Node) -> Parsed<Node> {
        let mut links = Vec::new();
        loop {
            let start = self.span;
            let kind = if self.take(".")? {
                self.named_link(&base, links.is_empty())?
            } else if self.take("[")? {
                let index = self.expression()?;
                self.expect("]")?;
                LinkKind::Index(index)
            } else {
                break;
            };
            links.push(Link { kind, span: start.to(self.end) });
        }
        if links.is_empty() {
            return Ok(base);
        }
        let span = base.span.to(self.end);
        Ok(Node { kind: Kind::Chain(Box::new(base), links), span })
    }

    /// Parses a field or a call, after its `.`.
    fn named_link(&mut self, base: &Node, is_first: bool) -> Parsed<LinkKind> {
        let (name, span) = self.field_name()?;
        match Macro::named(name) {
            _ if !self.take("(")? => self.field(name, span, base, is_first),
            Some(each) => self.each(each),
            None => self.method(name, span),
        }
    }

    fn field(&mut self, name: &str, span: Span, base: &Node, is_first: bool) -> Parsed<LinkKind> {
        let field: Arc<str> = name.into();
        if let (Kind::Root(root), true) = (&base.kind, is_first) {
            if *root == Root::Run && !RUN_FIELDS.contains(&name) {
                return Err(unknown_field(name, span, "the run", &RUN_FIELDS));
            }
            if let Some(reference) = self.references.last_mut() {
                reference.field = Some(field.clone());
                reference.span.end = span.end;
            }
        }
        Ok(LinkKind::Field(field))
    }

    /// Parses the call of a function, after its name.
    fn call(&mut self, name: &str, span: Span) -> Parsed<Node> {
        self.expect("(")?;
        if name == HAS {
            return self.has(span);
        }
        let (function, takes) = Function::named(name).ok_or_else(|| unknown_function(name, span))?;
        let arguments = self.arguments(")")?;
        let span = span.to(self.end);
        check_arguments(name, &takes, arguments.len(), span)?;
        let kind = fold(function, &arguments)?.map_or(Kind::Call(function, arguments), Kind::Constant);
        Ok(Node { kind, span })
    }

    fn has(&mut self, span: Span) -> Parsed<Node> {
        let argument = self.expression()?;
        self.expect(")")?;
        let wrong = ExpressionError::new(argument.span, "`has` takes a field, as in has(input.day)");
        let kind = match argument.kind {
            Kind::StepField(step, field) => Kind::HasStepField(step, field),
            Kind::Chain(base, mut links) => {
                let Some(Link { kind: LinkKind::Field(field), .. }) = links.pop() else { return Err(wrong) };
                let end = links.last().map_or(base.span.end, |link| link.span.end);
                let span = base.span.to(end);
                let base = if links.is_empty() { *base } else { Node { kind: Kind::Chain(base, links), span } };
                Kind::Has(Box::new(base), field)
            }
            _ => return Err(wrong),
        };
        Ok(Node { kind, span: span.to(self.end) })
    }

    /// Parses the call of a method, after its `(`.
    fn method(&mut self, name: &str, span: Span) -> Parsed<LinkKind> {
        let (method, takes) = Method::named(name).ok_or_else(|| unknown_method(name, span))?;
        let arguments = self.arguments(")")?;
        check_arguments(name, &takes, arguments.len(), span.to(self.end))?;
        match (method, arguments.as_slice()) {
            (Method::Matches, [Node { kind: Kind::Constant(Value::Text(pattern)), span }]) => {
                self.pattern(pattern, *span)
            }
            _ => Ok(LinkKind::Call(method, arguments)),
        }
    }

    /// Checks a literal pattern, so that an invalid one is found early.
    fn pattern(&mut self, pattern: &str, span: Span) -> Parsed<LinkKind> {
        let pattern = Pattern::read(pattern).map_err(|message| ExpressionError::new(span, message))?;
        self.patterns.push(pattern);
        Ok(LinkKind::Matches(self.patterns.len() - 1))
    }

    /// Parses the variable and the expression of a macro, after its `(`.
    fn each(&mut self, each: Macro) -> Parsed<LinkKind> {
        let name = each.as_str();
        let Token::Name(variable) = self.token else {
            return Err(self.unexpected(&format!("the name of a variable, as in {name}(x, …)")));
        };
        if RESERVED.contains(&variable) {
            let message = format!("`{variable}` cannot be the name of a variable; choose another, as in {name}(x, …)");
            return Err(ExpressionError::new(self.span, message));
        }
        self.advance()?;
        self.expect(",")?;
        self.variables.push(variable);
        let body = self.expression();
        self.variables.pop();
        let body = Box::new(body?);
        self.expect(")")?;
        Ok(LinkKind::Each(each, body))
    }
}

fn unknown_field(name: &str, span: Span, of: &str, known: &[&str]) -> Box<ExpressionError> {
    let suggestion = did_you_mean(name, known.iter().copied());
    let known = known.join("`, `");
    ExpressionError::new(span, format!("{of} has no field `{}`; there are `{known}`{suggestion}", Excerpt(name)))
}

fn unknown_function(name: &str, span: Span) -> Box<ExpressionError> {
    let shown = Excerpt(name);
    let message = if method_names().any(|method| method == name) {
        format!("`{shown}` stands behind a value, as in x.{shown}(…)")
    } else {
        format!("unknown function `{shown}`{}", did_you_mean(name, function_names()))
    };
    ExpressionError::new(span, message)
}

fn unknown_method(name: &str, span: Span) -> Box<ExpressionError> {
    let shown = Excerpt(name);
    let message = if function_names().any(|function| function == name) {
        format!("`{shown}` stands before its value, as in {shown}(x)")
    } else {
        format!("unknown function `{shown}`{}", did_you_mean(name, method_names()))
    };
    ExpressionError::new(span, message)
}

fn check_arguments(name: &str, takes: &RangeInclusive<usize>, given: usize, span: Span) -> Parsed<()> {
    if takes.contains(&given) {
        return Ok(());
    }
    let (least, most) = (takes.start(), takes.end());
    let wanted = if least == most { least.to_string() } else { format!("{least} or {most}") };
    let noun = if wanted == "1" { "argument" } else { "arguments" };
    Err(ExpressionError::new(span, format!("`{name}` takes {wanted} {noun}, and there are {given}")))
}

/// Computes literal moments and durations, so that an invalid one is found early.
fn fold(function: Function, arguments: &[Node]) -> Parsed<Option<Value>> {
    let [Node { kind: Kind::Constant(value @ Value::Text(_)), span }] = arguments else { return Ok(None) };
    match function {
        Function::Timestamp | Function::Duration => {
            let made = super::conversions::convert(function, value);
            made.map(Some).map_err(|message| ExpressionError::new(*span, message))
        }
        _ => Ok(None),
    }
}
