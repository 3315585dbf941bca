//! The tasks that a worker serves.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::api::error::Result;
use crate::api::name::{Name, check_seen};
use crate::api::write::{Claim, KindSelection, QueueSelection};

/// The largest number of kinds or queues that a text names.
const SHOWN: usize = 5;

/// The queues and kinds that a worker serves, as it stated when it opened its session. Diagnostics
/// use it; claims are not restricted by it. By default a worker serves everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Served {
    /// The queues; `None` for all queues, including future ones.
    pub queues: Option<Vec<Name>>,
    /// The kinds.
    pub kinds: KindSelection,
    /// The code of orchestrations that the worker has. `None`, the default, stands for every
    /// version of the orchestrations among `kinds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Vec<ServedCode>>,
}

/// The code of an orchestration that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCode {
    /// The kind of the orchestration. With `*` at its end it stands for every kind that begins with
    /// the text before, as the runs of all workflows do: `run:*`.
    pub kind: Name,
    /// The oldest version whose orchestrations the code continues.
    pub since: u32,
    /// The version of the code.
    pub version: u32,
}

impl ServedCode {
    /// Returns whether it is the code of orchestrations of this kind, in some version.
    #[must_use]
    pub fn is_of(&self, kind: &Name) -> bool {
        match self.kind.strip_suffix('*') {
            Some(prefix) => kind.starts_with(prefix),
            None => self.kind == *kind,
        }
    }

    /// Returns whether the code continues an orchestration of this kind that `version` began.
    /// `None` stands for an orchestration that has not begun, which any version can begin.
    #[must_use]
    pub fn goes_on_with(&self, kind: &Name, version: Option<u32>) -> bool {
        self.is_of(kind) && version.is_none_or(|version| (self.since..=self.version).contains(&version))
    }
}

impl Served {
    /// Returns what a claim selects, including queues for which its current limit is 0.
    #[must_use]
    pub fn by(claim: &Claim) -> Self {
        let queues = match &claim.queues {
            QueueSelection::All => None,
            QueueSelection::Only(queues) => Some(queues.iter().map(|(name, _)| name.clone()).collect()),
        };
        let code = if claim.orchestrations { None } else { Some(Vec::new()) };
        Self { queues, kinds: claim.kinds.clone(), code }
    }

    /// Returns whether it includes everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.queues.is_none() && self.kinds == KindSelection::All && self.code.is_none()
    }

    /// Returns whether it includes tasks of a queue, of any kind.
    #[must_use]
    pub fn has_queue(&self, queue: &Name) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }

    /// Returns whether it includes tasks of a kind, in any queue.
    #[must_use]
    pub fn has_kind(&self, kind: &Name) -> bool {
        self.kinds.selects(kind)
    }

    /// Returns whether it includes the code of an orchestration of this kind that `version` began,
    /// in any queue. `None` stands for an orchestration that has not begun.
    #[must_use]
    pub fn has_code(&self, kind: &Name, version: Option<u32>) -> bool {
        match &self.code {
            None => self.has_kind(kind),
            Some(code) => code.iter().any(|code| code.goes_on_with(kind, version)),
        }
    }

    /// Checks the prefixes of kinds.
    ///
    /// # Errors
    /// [`is_invalid`](crate::Error::is_invalid) for a prefix with an invisible character.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.kinds {
            KindSelection::Matching(matching) => {
                matching.prefixes.iter().try_for_each(|prefix| check_seen("beginning of kinds", prefix))
            }
            KindSelection::All | KindSelection::Only(_) => Ok(()),
        }
    }

    /// Returns the number of names of queues, kinds and code.
    pub(crate) fn names(&self) -> usize {
        let kinds = match &self.kinds {
            KindSelection::All => 0,
            KindSelection::Only(kinds) => kinds.len(),
            KindSelection::Matching(matching) => matching.kinds.len() + matching.prefixes.len(),
        };
        self.queues.as_ref().map_or(0, Vec::len) + kinds + self.code.as_ref().map_or(0, Vec::len)
    }

    /// Returns the kinds of the orchestrations whose code is included, as text; `None` if there are
    /// none.
    fn code_text(&self) -> Option<String> {
        let kinds: BTreeSet<&Name> = self.code.iter().flatten().map(|code| &code.kind).collect();
        (!kinds.is_empty()).then(|| format!("orchestrations {}", shown(kinds.into_iter().map(ToString::to_string))))
    }

    /// Returns the kinds as text; `None` if there are none.
    fn kinds_text(&self) -> Option<String> {
        let names: Vec<String> = match &self.kinds {
            KindSelection::All => return Some("every kind".to_owned()),
            KindSelection::Only(kinds) => kinds.iter().map(ToString::to_string).collect(),
            KindSelection::Matching(matching) => {
                let prefixes = matching.prefixes.iter().map(|prefix| format!("{prefix}*"));
                matching.kinds.iter().map(ToString::to_string).chain(prefixes).collect()
            }
        };
        (!names.is_empty()).then(|| shown(names.into_iter()))
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what: Vec<String> = self.kinds_text().into_iter().chain(self.code_text()).collect();
        f.write_str(if what.is_empty() { "nothing" } else { "" })?;
        f.write_str(&what.join(", "))?;
        match &self.queues {
            None => Ok(()),
            Some(queues) => write!(f, " from {}", shown(queues.iter().map(ToString::to_string))),
        }
    }
}

/// Returns the first names, and the number of the others.
fn shown(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    match (names.is_empty(), more) {
        (true, _) => "nothing".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        name.parse().unwrap()
    }

    #[test]
    fn it_reads_as_a_list_that_does_not_grow() {
        let kinds = |count: usize| KindSelection::Only((0..count).map(|number| name(&format!("k{number}"))).collect());
        let text = |queues, kinds| Served { queues, kinds, code: None }.to_string();
        assert_eq!(text(None, KindSelection::All), "every kind");
        assert_eq!(text(Some(vec![name("slow")]), kinds(2)), "k0, k1 from slow");
        assert_eq!(text(None, kinds(7)), "k0, k1, k2, k3, k4 and 2 more");
        assert_eq!(text(None, KindSelection::matching(vec![name("a")], vec!["mail:".into()])), "a, mail:*");
        assert_eq!(text(None, kinds(0)), "nothing");
        let code = [(0, 1), (2, 2)].map(|(since, version)| ServedCode { kind: name("order"), since, version });
        let with = |kinds| Served { queues: Some(vec![name("slow")]), kinds, code: Some(code.to_vec()) };
        assert_eq!(with(kinds(1)).to_string(), "k0, orchestrations order from slow");
        assert_eq!(with(kinds(0)).to_string(), "orchestrations order from slow");
    }

    /// Shows: B6
    #[test]
    fn code_goes_on_with_the_versions_since_that_which_it_names() {
        let code = ServedCode { kind: name("order"), since: 2, version: 4 };
        let serves = Served { code: Some(vec![code]), ..Served::default() };
        let versions = [None, Some(1), Some(2), Some(4), Some(5)];
        let has = versions.map(|version| serves.has_code(&name("order"), version));
        assert_eq!(has, [true, false, true, true, false]);
        assert!(!serves.has_code(&name("refund"), None), "kinds of tasks are no code");
        assert!(Served::default().has_code(&name("refund"), Some(7)));
    }
}
