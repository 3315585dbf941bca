//! Which code a kind of orchestrations has.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use onward_store::{KindSelection, Name};

use super::context::OrchestrationContext;
use super::machine::{Code, CodeFuture};
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::typed::{Task, encode_result};

/// The code that was registered, under the kinds as the program wrote them.
#[derive(Clone, Default)]
pub(crate) struct Registered(Vec<(String, Code)>);

impl Registered {
    pub(crate) fn add<T, F, Answer>(&mut self, function: F)
    where
        T: Task,
        F: Fn(T, OrchestrationContext) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
    {
        self.0.push((T::KIND.to_owned(), typed(function)));
    }

    /// The code by kind.
    pub(crate) fn table(&self) -> Result<CodeTable> {
        let mut codes = HashMap::new();
        for (kind, code) in &self.0 {
            let kind = Name::new(kind)?;
            if codes.insert(kind.clone(), Arc::clone(code)).is_some() {
                return Err(Error::invalid(format!("the kind `{kind}` has two orchestrations; register one")));
            }
        }
        Ok(CodeTable(codes))
    }
}

fn typed<T, F, Answer>(function: F) -> Code
where
    T: Task,
    F: Fn(T, OrchestrationContext) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<T::Output, Failure>> + Send + 'static,
{
    Arc::new(move |journal| {
        let input = serde_json::from_slice::<T>(&journal.payload);
        let answer = input.map(|input| function(input, OrchestrationContext::new(journal)));
        Box::pin(async move {
            let answer = answer.map_err(|error| {
                Failure::permanent(format!("the payload is not what the kind `{}` expects: {error}", T::KIND))
            })?;
            encode_result(&answer.await?)
        }) as CodeFuture
    })
}

/// The code of the orchestrations of one run.
#[derive(Default)]
pub(crate) struct CodeTable(HashMap<Name, Code>);

impl CodeTable {
    pub(super) fn get(&self, kind: &Name) -> Option<&Code> {
        self.0.get(kind)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn kinds(&self) -> KindSelection {
        let mut kinds: Vec<Name> = self.0.keys().cloned().collect();
        kinds.sort();
        KindSelection::Only(kinds)
    }
}
