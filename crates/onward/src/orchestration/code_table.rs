//! Which code a kind of orchestrations has.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use onward_store::{KindSelection, Name, ServedCode};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::handlers::Failure;
use crate::orchestration::code::OrchestrationContext;
use crate::orchestration::replay::{Code, CodeFuture, ReplayContext};
use crate::submit::{Task, encode_result};

/// Which code of a kind this is, and whose orchestrations it goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrchestrationOptions {
    version: u32,
    since: Option<u32>,
}

impl OrchestrationOptions {
    /// Version 0, which goes on with what it began.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of this code. Orchestrations that begin get the newest code of their kind, and
    /// keep its number; another number's code goes on with them only where it says so. Default: 0.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// It goes on with orchestrations that codes since this number began, too: its changes are
    /// behind [`patched`](crate::orchestration::OrchestrationContext::patched), or do not touch
    /// what is in their histories. 0 for all. Default: only with those of its own number.
    #[must_use]
    pub fn since(mut self, version: u32) -> Self {
        self.since = Some(version);
        self
    }
}

/// The code that was registered, under the kinds as the program wrote them.
#[derive(Clone, Default)]
pub(crate) struct Registered(Vec<Registration>);

#[derive(Clone)]
struct Registration {
    kind: String,
    /// Whether its type says that it is an orchestration.
    is_orchestration: bool,
    options: OrchestrationOptions,
    code: Code,
}

impl Registered {
    pub(crate) fn add<T, F, Fut>(&mut self, options: OrchestrationOptions, function: F)
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        let (kind, is_orchestration) = (T::KIND.to_owned(), T::ORCHESTRATION);
        self.0.push(Registration { kind, is_orchestration, options, code: code_of(typed::<T>, function) });
    }

    /// Code that is known by the name of its kind.
    pub(crate) fn add_json<F, Fut>(&mut self, kind: &str, options: OrchestrationOptions, function: F)
    where
        F: Fn(Value, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        let code = code_of(|replay_context| json_payload(&replay_context.payload, &replay_context.kind), function);
        self.0.push(Registration { kind: kind.to_owned(), is_orchestration: true, options, code });
    }

    /// The code by kind.
    pub(crate) fn table(&self) -> Result<CodeTable> {
        let mut kinds: HashMap<Name, Versions> = HashMap::new();
        for Registration { kind, is_orchestration, options, code } in &self.0 {
            let kind = Name::new(kind)?;
            kind.check_own("kind")?;
            if !is_orchestration {
                return Err(Error::invalid(format!(
                    "`{kind}` has the code of an orchestration, and its type does not say that it is one; have it say `ORCHESTRATION = true`"
                )));
            }
            let version = options.version;
            let versioned = Versioned { since: options.since.unwrap_or(version), code: Arc::clone(code) };
            if versioned.since > version {
                let since = versioned.since;
                return Err(Error::invalid(format!(
                    "version {version} of `{kind}` is to go on with those since {since}, which is later"
                )));
            }
            if kinds.entry(kind.clone()).or_default().0.insert(version, versioned).is_some() {
                return Err(Error::invalid(format!(
                    "the kind `{kind}` has two orchestrations of version {version}; register one, or give the other another version"
                )));
            }
        }
        Ok(CodeTable(kinds))
    }
}

struct Versioned {
    /// The first version whose orchestrations it goes on with.
    since: u32,
    code: Code,
}

/// The codes of one kind, by version.
#[derive(Default)]
pub(crate) struct Versions(BTreeMap<u32, Versioned>);

impl Versions {
    /// The newest, and its version: for those that begin.
    pub(super) fn newest(&self) -> Option<(u32, &Code)> {
        self.0.last_key_value().map(|(version, versioned)| (*version, &versioned.code))
    }

    /// That which goes on with what a version began: its own, else the oldest that says it can.
    pub(super) fn going_on_with(&self, version: u32) -> Option<&Code> {
        self.0
            .range(version..)
            .find(|(known, versioned)| **known == version || versioned.since <= version)
            .map(|(_, it)| &it.code)
    }
}

fn typed<T: Task>(replay_context: &ReplayContext) -> Result<T, Failure> {
    serde_json::from_slice(&replay_context.payload)
        .map_err(|error| Failure::permanent(format!("the payload is not what the kind `{}` expects: {error}", T::KIND)))
}

/// A payload as JSON.
pub(super) fn json_payload(payload: &Bytes, kind: &Name) -> Result<Value, Failure> {
    if payload.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(payload)
        .map_err(|error| Failure::permanent(format!("the payload of the kind `{kind}` is no JSON: {error}")))
}

/// The code that a function is, and how its input is read.
fn code_of<I, O, F, Fut>(input: fn(&ReplayContext) -> Result<I, Failure>, function: F) -> Code
where
    I: Send + 'static,
    O: Serialize + 'static,
    F: Fn(I, OrchestrationContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Failure>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |replay_context| {
        let function = Arc::clone(&function);
        // Nothing of it runs before it is polled: its own part before the first `await` is to find
        // the time and the seed, and may panic.
        Box::pin(async move {
            let input = input(&replay_context)?;
            encode_result(&function(input, OrchestrationContext::new(replay_context)).await?)
        }) as CodeFuture
    })
}

/// The code of the orchestrations of one run.
#[derive(Default)]
pub(crate) struct CodeTable(HashMap<Name, Versions>);

impl CodeTable {
    pub(crate) fn get(&self, kind: &Name) -> Option<&Versions> {
        self.0.get(kind)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns which versions of which kinds it has, in order, for who asks why an orchestration
    /// waits.
    pub(crate) fn served(&self) -> Vec<ServedCode> {
        let versions = |(kind, versions): (&Name, &Versions)| {
            let served = |(version, code): (&u32, &Versioned)| ServedCode {
                kind: kind.clone(),
                since: code.since,
                version: *version,
            };
            versions.0.iter().map(served).collect::<Vec<_>>()
        };
        let mut served: Vec<ServedCode> = self.0.iter().flat_map(versions).collect();
        served.sort_unstable_by(|one, other| (&one.kind, one.version).cmp(&(&other.kind, other.version)));
        served
    }

    pub(crate) fn kinds(&self) -> KindSelection {
        let mut kinds: Vec<Name> = self.0.keys().cloned().collect();
        kinds.sort();
        KindSelection::Only(kinds)
    }
}
