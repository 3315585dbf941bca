//! Maps kinds of orchestrations to their code.

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
use crate::orchestration::remote_code::{RemoteCode, RemoteRegistration};
use crate::orchestration::replay::{Code, CodeFuture, ReplayContext};
use crate::submit::{Task, encode_result};

/// The version of a code, and the versions whose orchestrations it continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrchestrationOptions {
    version: u32,
    since: Option<u32>,
}

impl OrchestrationOptions {
    /// Returns the options of version 0, which continues only its own orchestrations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version of this code. New orchestrations get the newest code of their kind, and
    /// keep its version. The code of another version continues them only if it [declares
    /// that](Self::since). Default: 0.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Also continues the orchestrations that versions since this one began. The changes of this
    /// code must be behind [`patched`](crate::orchestration::OrchestrationContext::patched), or not
    /// affect those histories. 0 for all. Default: only its own version.
    #[must_use]
    pub fn since(mut self, version: u32) -> Self {
        self.since = Some(version);
        self
    }
}

/// The registered code, under the kinds as the program wrote them.
#[derive(Clone, Default)]
pub(crate) struct Registered(Vec<Registration>, Vec<RemoteRegistration>);

#[derive(Clone)]
struct Registration {
    kind: String,
    /// True if its type declares itself an orchestration.
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

    /// Registers code by the name of its kind.
    pub(crate) fn add_json<F, Fut>(&mut self, kind: &str, options: OrchestrationOptions, function: F)
    where
        F: Fn(Value, OrchestrationContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        let code = code_of(|replay_context| json_payload(&replay_context.payload, &replay_context.kind), function);
        self.0.push(Registration { kind: kind.to_owned(), is_orchestration: true, options, code });
    }

    /// Registers code that runs in another process.
    pub(crate) fn add_remote(&mut self, kind: &str, code: Arc<dyn RemoteCode>) {
        self.1.push(RemoteRegistration { kind: kind.to_owned(), code });
    }

    /// Returns the code by kind.
    pub(crate) fn table(&self) -> Result<CodeTable> {
        let mut kinds: HashMap<Name, Versions> = HashMap::new();
        for Registration { kind, is_orchestration, options, code } in &self.0 {
            let kind = Name::new(kind)?;
            kind.check_own("kind")?;
            if !is_orchestration {
                return Err(Error::invalid(format!(
                    "`{kind}` has the code of an orchestration, but its type is not declared as one; set `ORCHESTRATION = true` in it"
                )));
            }
            let version = options.version;
            let versioned = Versioned { since: options.since.unwrap_or(version), code: Arc::clone(code) };
            if versioned.since > version {
                let since = versioned.since;
                return Err(Error::invalid(format!(
                    "version {version} of `{kind}` cannot continue orchestrations since version {since}, which is later; set `since` to at most {version}"
                )));
            }
            if kinds.entry(kind.clone()).or_default().0.insert(version, versioned).is_some() {
                return Err(Error::invalid(format!(
                    "the kind `{kind}` has two orchestrations of version {version}; register one, or give the other another version"
                )));
            }
        }
        let remote = self.remote(&kinds)?;
        Ok(CodeTable { kinds, remote })
    }

    fn remote(&self, kinds: &HashMap<Name, Versions>) -> Result<HashMap<Name, Arc<dyn RemoteCode>>> {
        let mut remote = HashMap::new();
        for RemoteRegistration { kind, code } in &self.1 {
            let kind = Name::new(kind)?;
            kind.check_own("kind")?;
            if kinds.contains_key(&kind) || remote.insert(kind.clone(), Arc::clone(code)).is_some() {
                return Err(Error::invalid(format!("the kind `{kind}` has two orchestrations; register one")));
            }
        }
        Ok(remote)
    }
}

struct Versioned {
    /// The first version whose orchestrations it continues.
    since: u32,
    code: Code,
}

/// The codes of one kind, by version.
#[derive(Default)]
pub(crate) struct Versions(BTreeMap<u32, Versioned>);

impl Versions {
    /// Returns the newest code and its version, for new orchestrations.
    pub(super) fn newest(&self) -> Option<(u32, &Code)> {
        self.0.last_key_value().map(|(version, versioned)| (*version, &versioned.code))
    }

    /// Returns the code that continues the orchestrations of a version: its own, or the oldest that
    /// declares it.
    pub(super) fn code_for(&self, version: u32) -> Option<&Code> {
        self.0
            .range(version..)
            .find(|(known, versioned)| **known == version || versioned.since <= version)
            .map(|(_, it)| &it.code)
    }
}

fn typed<T: Task>(replay_context: &ReplayContext) -> Result<T, Failure> {
    serde_json::from_slice(&replay_context.payload)
        .map_err(|error| Failure::permanent(format!("the payload does not match the kind `{}`: {error}", T::KIND)))
}

/// Returns a payload as JSON.
pub(super) fn json_payload(payload: &Bytes, kind: &Name) -> Result<Value, Failure> {
    if payload.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(payload)
        .map_err(|error| Failure::permanent(format!("the payload of the kind `{kind}` is no JSON: {error}")))
}

/// Returns the code of a function that reads its input by `input`.
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
        // Nothing runs before the first poll, because the part of the function before its first
        // `await` needs the time and the seed, and may panic.
        Box::pin(async move {
            let input = input(&replay_context)?;
            encode_result(&function(input, OrchestrationContext::new(replay_context)).await?)
        }) as CodeFuture
    })
}

/// The code of the orchestrations of one run.
#[derive(Default)]
pub(crate) struct CodeTable {
    kinds: HashMap<Name, Versions>,
    /// The kinds whose code runs in another process.
    remote: HashMap<Name, Arc<dyn RemoteCode>>,
}

impl CodeTable {
    pub(crate) fn get(&self, kind: &Name) -> Option<&Versions> {
        self.kinds.get(kind)
    }

    /// Returns the code of a kind that runs in another process.
    pub(crate) fn remote(&self, kind: &Name) -> Option<&Arc<dyn RemoteCode>> {
        self.remote.get(kind)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.remote.is_empty()
    }

    /// Returns true if it has code of a kind.
    pub(crate) fn has(&self, kind: &Name) -> bool {
        self.kinds.contains_key(kind) || self.remote.contains_key(kind)
    }

    /// Returns the versions of the kinds that it has, in order, for reports about why an
    /// orchestration waits.
    pub(crate) fn served(&self) -> Vec<ServedCode> {
        let versions = |(kind, versions): (&Name, &Versions)| {
            let served = |(version, code): (&u32, &Versioned)| ServedCode {
                kind: kind.clone(),
                since: code.since,
                version: *version,
            };
            versions.0.iter().map(served).collect::<Vec<_>>()
        };
        let remote = self.remote.keys().map(|kind| ServedCode { kind: kind.clone(), since: 0, version: 0 });
        let mut served: Vec<ServedCode> = self.kinds.iter().flat_map(versions).chain(remote).collect();
        served.sort_unstable_by(|one, other| (&one.kind, one.version).cmp(&(&other.kind, other.version)));
        served
    }

    /// Returns the kinds that it has, in order.
    pub(crate) fn names(&self) -> Vec<Name> {
        let mut kinds: Vec<Name> = self.kinds.keys().chain(self.remote.keys()).cloned().collect();
        kinds.sort();
        kinds
    }

    /// Selects the kinds that it has.
    pub(crate) fn kinds(&self) -> KindSelection {
        KindSelection::Only(self.names())
    }
}
