//! Maps kinds to handlers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use onward_store::{KindSelection, Name};

use super::app_state::AppState;
use super::kind_pattern::KindPattern;
use crate::error::{Error, Result};
use crate::handlers::{Handler, HandlerOptions};
use crate::orchestration::CodeTable;
use crate::submit::Task;

/// The kinds that a registration is for, as the program gave them.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// The kind of a type, whatever characters its name has.
    Type {
        /// The kind.
        kind: &'static str,
        /// True if the type declares itself an orchestration.
        is_orchestration: bool,
    },
    /// A pattern, not yet parsed.
    Pattern(String),
}

impl Target {
    pub(crate) fn of<T: Task>() -> Self {
        Self::Type { kind: T::KIND, is_orchestration: T::ORCHESTRATION }
    }

    fn parse(&self) -> Result<KindPattern> {
        match self {
            Self::Type { kind, .. } => KindPattern::kind(kind),
            Self::Pattern(pattern) => KindPattern::parse(pattern),
        }
    }

    /// Rejects a handler for a kind that has, or needs, the code of an orchestration: one of the
    /// two would never run.
    fn check(&self, pattern: &KindPattern, codes: &CodeTable, owner: &Owner) -> Result<()> {
        let of = owner.as_ref().map_or_else(String::new, |module| format!(" of the module `{module}`"));
        if matches!(self, Self::Type { is_orchestration: true, .. }) {
            return Err(Error::invalid(format!(
                "the kind `{pattern}` is declared as an orchestration, but a handler{of} is registered for it; register its code \
                 with `orchestrate`"
            )));
        }
        match pattern {
            KindPattern::Kind(kind) if codes.get(kind).is_some() || codes.remote(kind).is_some() => {
                Err(Error::invalid(format!(
                    "the kind `{kind}` has the code of an orchestration and a handler{of}; give one of them another kind"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The handlers as they were registered. Errors in them are reported when the engine runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registrations {
    handlers: Vec<(Target, Handler, Owner)>,
    options: Vec<(Target, HandlerOptions)>,
}

/// The module that registered something, or `None` for the program itself.
pub(crate) type Owner = Option<Arc<str>>;

impl Registrations {
    pub(crate) fn add(&mut self, target: Target, handler: Handler, owner: Owner) {
        self.handlers.push((target, handler, owner));
    }

    pub(crate) fn add_options(&mut self, target: Target, options: HandlerOptions) {
        self.options.push((target, options));
    }

    /// Checks the registrations and builds the handler table. `state` is the engine's state and
    /// `codes` the code of its orchestrations. An engine without handlers and code is rejected
    /// because it could run nothing. Only an engine of the program `onward` may have handlers of
    /// reserved kinds.
    pub(crate) fn table(
        &self,
        state: &AppState,
        codes: &CodeTable,
        runs_workflows: bool,
        may_be_reserved: bool,
    ) -> Result<HandlerTable> {
        let options = self.ordered_options()?;
        let mut table = HandlerTable::default();
        let mut owners = HashMap::<KindPattern, &Owner>::new();
        for (target, handler, owner) in &self.handlers {
            let pattern = target.parse()?;
            if let KindPattern::Kind(kind) = &pattern
                && !may_be_reserved
            {
                kind.check_own("kind")?;
            }
            target.check(&pattern, codes, owner)?;
            handler.options.check(&pattern)?;
            check_state(&pattern, handler, state, owner)?;
            if let Some(first) = owners.insert(pattern.clone(), owner) {
                return Err(two_handlers(&pattern, first, owner));
            }
            table.add(pattern, handler, &options);
        }
        if owners.is_empty() && codes.is_empty() && !runs_workflows {
            return Err(Error::invalid(
                "the engine has no handler and could run nothing; register one with `handle` or `register`",
            ));
        }
        // `get` takes the first prefix that matches, so the longest must come first.
        table.prefixes.sort_by_key(|served| std::cmp::Reverse(served.prefix.len()));
        table.kinds = table.selection();
        Ok(table)
    }

    /// Returns the options of patterns, from the widest pattern to the narrowest.
    fn ordered_options(&self) -> Result<Vec<PatternOptions>> {
        let mut entries = Vec::<PatternOptions>::with_capacity(self.options.len());
        for (target, options) in &self.options {
            let pattern = target.parse()?;
            options.check(&pattern)?;
            let mut same = entries.iter().filter(|entry| entry.pattern == pattern);
            if let Some(what) = same.find_map(|entry| entry.clash(options)) {
                return Err(Error::invalid(format!("the pattern `{pattern}` has two {what}; set one")));
            }
            entries.push(PatternOptions { pattern, options: options.clone() });
        }
        entries.sort_by_key(|entry| entry.pattern.precision());
        Ok(entries)
    }
}

fn check_state(pattern: &KindPattern, handler: &Handler, state: &AppState, owner: &Owner) -> Result<()> {
    let has = |kind| state.has(kind) || handler.state.as_ref().is_some_and(|own| own.has(kind));
    match handler.missing.and_then(|missing| missing(&has)) {
        None => Ok(()),
        Some(name) => {
            let of = owner.as_ref().map_or_else(String::new, |module| format!(" of the module `{module}`"));
            Err(Error::invalid(format!(
                "the handler of `{pattern}`{of} takes a state of type `{name}`, which the engine does not have; set one with \
                 `engine.state(…)`"
            )))
        }
    }
}

#[cold]
fn two_handlers(pattern: &KindPattern, first: &Owner, second: &Owner) -> Error {
    let (what, remedy) = match pattern {
        KindPattern::Prefix(prefix) if prefix.is_empty() => {
            ("there are two handlers for any kind".to_owned(), "register one with `handle_any`, or for `*`")
        }
        KindPattern::Prefix(_) => (format!("the pattern `{pattern}` has two handlers"), "register one"),
        KindPattern::Kind(_) => (format!("the kind `{pattern}` has two handlers"), "register one"),
    };
    Error::invalid(format!("{what}{}; {remedy}", of_whom(first, second)))
}

/// Returns the text that names who registered the two handlers, or nothing if no module did.
fn of_whom(first: &Owner, second: &Owner) -> String {
    let name =
        |owner: &Owner| owner.as_ref().map_or("the program".to_owned(), |module| format!("the module `{module}`"));
    if first.is_none() && second.is_none() {
        return String::new();
    }
    format!(", one from {} and one from {}", name(first), name(second))
}

/// The options of the kinds of a pattern.
#[derive(Debug)]
struct PatternOptions {
    pattern: KindPattern,
    options: HandlerOptions,
}

impl PatternOptions {
    /// Returns the name of a setting that both this and `options` set.
    fn clash(&self, options: &HandlerOptions) -> Option<&'static str> {
        let own = &self.options;
        [
            ("retry policies", own.retry.is_some() && options.retry.is_some()),
            ("timeouts", own.timeout.is_some() && options.timeout.is_some()),
            ("heartbeat timeouts", own.heartbeat_timeout.is_some() && options.heartbeat_timeout.is_some()),
            ("failure policies", own.failure_policy.is_some() && options.failure_policy.is_some()),
        ]
        .into_iter()
        .find_map(|(what, clashes)| clashes.then_some(what))
    }
}

/// The handlers of one run, each with all options that apply to it.
#[derive(Debug, Default)]
pub(crate) struct HandlerTable {
    exact: HashMap<Name, Handler>,
    /// Sorted by length, the longest prefix first.
    prefixes: Vec<PrefixHandler>,
    kinds: KindSelection,
}

/// The handler of all kinds with a prefix that have no more precise handler.
#[derive(Debug)]
struct PrefixHandler {
    prefix: String,
    /// The handler with the options that apply to all of its kinds.
    handler: Handler,
    registered: Handler,
    /// The options of some of its kinds, from the widest pattern to the narrowest.
    narrower: Vec<(KindPattern, HandlerOptions)>,
}

impl HandlerTable {
    fn add(&mut self, pattern: KindPattern, registered: &Handler, entries: &[PatternOptions]) {
        let mut options = HandlerOptions::default();
        entries.iter().filter(|entry| entry.pattern.covers(&pattern)).for_each(|entry| options.nearer(&entry.options));
        options.nearer(&registered.options);
        match pattern {
            KindPattern::Kind(kind) => {
                self.exact.insert(kind, registered.complete(options));
            }
            KindPattern::Prefix(prefix) => {
                let pattern = KindPattern::Prefix(prefix.clone());
                let narrower =
                    entries.iter().filter(|entry| pattern.covers(&entry.pattern) && entry.pattern != pattern);
                let narrower = narrower.map(|entry| (entry.pattern.clone(), entry.options.clone())).collect();
                let handler = registered.complete(options.clone());
                let registered = Handler { options, ..registered.clone() };
                self.prefixes.push(PrefixHandler { prefix, handler, registered, narrower });
            }
        }
    }

    /// Returns the handler of a kind: its own, or that of the longest pattern that matches.
    pub(crate) fn get(&self, kind: &Name) -> Option<Cow<'_, Handler>> {
        if let Some(handler) = self.exact.get(kind) {
            return Some(Cow::Borrowed(handler));
        }
        let served = self.prefixes.iter().find(|served| kind.starts_with(served.prefix.as_str()))?;
        Some(served.handler_of(kind))
    }

    /// Returns the kinds that have a handler.
    pub(crate) fn kinds(&self) -> KindSelection {
        self.kinds.clone()
    }

    fn selection(&self) -> KindSelection {
        let mut kinds: Vec<Name> = self.exact.keys().cloned().collect();
        // In order, so that two runs of a program write the same.
        kinds.sort_unstable();
        match &self.prefixes[..] {
            [] => KindSelection::Only(kinds),
            [.., shortest] if shortest.prefix.is_empty() => KindSelection::All,
            prefixes => {
                let prefixes = prefixes.iter().map(|served| served.prefix.clone()).collect();
                KindSelection::matching(kinds, prefixes)
            }
        }
    }
}

impl PrefixHandler {
    fn handler_of(&self, kind: &Name) -> Cow<'_, Handler> {
        let mut narrower = self.narrower.iter().filter(|(pattern, _)| pattern.matches(kind)).peekable();
        if narrower.peek().is_none() {
            return Cow::Borrowed(&self.handler);
        }
        // The options depend on the kind, so they are merged for each lookup.
        let mut options = self.registered.options.clone();
        narrower.for_each(|(_, nearer)| options.nearer(nearer));
        Cow::Owned(self.registered.complete(options))
    }
}
