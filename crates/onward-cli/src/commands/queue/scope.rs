//! The scope of a pause.

use clap::Args;
use onward_store::{Name, Scope};

/// One of: a queue, a kind, a group, everything.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Scoped {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: Option<Name>,
    /// All tasks of this kind, in every queue
    #[arg(long)]
    kind: Option<Name>,
    /// All tasks of this group, in every queue
    #[arg(long)]
    group: Option<Name>,
    /// Everything
    #[arg(long)]
    all: bool,
}

impl Scoped {
    /// Returns the scope that the user typed. Clap ensures that there is exactly one.
    pub(super) fn scope(self) -> Scope {
        match (self.queue, self.kind, self.group) {
            (Some(queue), ..) => Scope::Queue(queue),
            (None, Some(kind), _) => Scope::Kind(kind),
            (None, None, Some(group)) => Scope::Group(group),
            (None, None, None) => Scope::All,
        }
    }
}

/// Returns the scope as text for people.
pub(crate) fn scope_text(scope: &Scope) -> String {
    match scope {
        Scope::All => "everything".to_owned(),
        Scope::Queue(queue) => format!("queue {queue}"),
        Scope::Kind(kind) => format!("kind {kind}"),
        Scope::Group(group) => format!("group {group}"),
    }
}
