//! What a pause or its end is about.

use clap::Args;
use onward_store::{Name, Scope};

/// One of a queue, a kind, a group, or everything.
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
    /// The scope that was typed; clap sees to it that exactly one was.
    pub(super) fn scope(self) -> Scope {
        match (self.queue, self.kind, self.group) {
            (Some(queue), ..) => Scope::Queue(queue),
            (None, Some(kind), _) => Scope::Kind(kind),
            (None, None, Some(group)) => Scope::Group(group),
            (None, None, None) => Scope::All,
        }
    }
}

/// The scope as people read it.
pub(crate) fn scope_text(scope: &Scope) -> String {
    match scope {
        Scope::All => "everything".to_owned(),
        Scope::Queue(queue) => format!("queue {queue}"),
        Scope::Kind(kind) => format!("kind {kind}"),
        Scope::Group(group) => format!("group {group}"),
    }
}
