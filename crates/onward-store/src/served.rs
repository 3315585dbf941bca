//! What workers serve.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::name::{Name, check_seen};
use crate::write::{Claim, KindSelection, QueueSelection};

/// How many kinds or queues are named in a text.
const SHOWN: usize = 5;

/// From which queues and of which kinds a worker takes tasks, as it said when it opened its session. It lets people know who is there for what; claims
/// are not held to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Served {
    /// From these queues; `None` for every one there is or will be.
    pub queues: Option<Vec<Name>>,
    /// Of these kinds.
    pub kinds: KindSelection,
}

impl Served {
    /// What a claim takes, however little there is room for now.
    #[must_use]
    pub fn by(claim: &Claim) -> Self {
        let queues = match &claim.queues {
            QueueSelection::All => None,
            QueueSelection::Only(queues) => Some(queues.iter().map(|(name, _)| name.clone()).collect()),
        };
        Self { queues, kinds: claim.kinds.clone() }
    }

    /// Whether it is everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.queues.is_none() && self.kinds == KindSelection::All
    }

    /// Whether tasks of a queue are among it, of whatever kind.
    #[must_use]
    pub fn has_queue(&self, queue: &Name) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
    }

    /// Whether tasks of a kind are among it, in whatever queue.
    #[must_use]
    pub fn has_kind(&self, kind: &Name) -> bool {
        self.kinds.selects(kind)
    }

    /// Checks that kinds may begin as it says.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.kinds {
            KindSelection::Matching(matching) => {
                matching.prefixes.iter().try_for_each(|prefix| check_seen("beginning of kinds", prefix))
            }
            KindSelection::All | KindSelection::Only(_) => Ok(()),
        }
    }

    /// How many names it has.
    pub(crate) fn names(&self) -> usize {
        let kinds = match &self.kinds {
            KindSelection::All => 0,
            KindSelection::Only(kinds) => kinds.len(),
            KindSelection::Matching(matching) => matching.kinds.len() + matching.prefixes.len(),
        };
        self.queues.as_ref().map_or(0, Vec::len) + kinds
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kinds {
            KindSelection::All => f.write_str("every kind")?,
            KindSelection::Only(kinds) => f.write_str(&shown(kinds.iter().map(ToString::to_string)))?,
            KindSelection::Matching(matching) => {
                let prefixes = matching.prefixes.iter().map(|prefix| format!("{prefix}*"));
                f.write_str(&shown(matching.kinds.iter().map(ToString::to_string).chain(prefixes)))?;
            }
        }
        match &self.queues {
            None => Ok(()),
            Some(queues) => write!(f, " from {}", shown(queues.iter().map(ToString::to_string))),
        }
    }
}

/// The first of some names, and how many more there are.
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
        let text = |queues, kinds| Served { queues, kinds }.to_string();
        assert_eq!(text(None, KindSelection::All), "every kind");
        assert_eq!(text(Some(vec![name("slow")]), kinds(2)), "k0, k1 from slow");
        assert_eq!(text(None, kinds(7)), "k0, k1, k2, k3, k4 and 2 more");
        assert_eq!(text(None, KindSelection::matching(vec![name("a")], vec!["mail:".into()])), "a, mail:*");
        assert_eq!(text(None, kinds(0)), "nothing");
    }
}
