//! What a limit is on.

use clap::Args;
use onward_store::{LimitScope, Name};

/// One of a queue, a kind, a group, groups whose names begin so, or everything.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Scoped {
    /// The tasks of this queue together
    #[arg(long)]
    queue: Option<Name>,
    /// The tasks of this kind together
    #[arg(long)]
    kind: Option<Name>,
    /// The tasks of this group together
    #[arg(long)]
    group: Option<Name>,
    /// The tasks of each group whose name begins so, each group by itself: tenant-* or *
    #[arg(long, value_name = "BEGINNING*", value_parser = parse_beginning)]
    groups: Option<String>,
    /// All tasks together
    #[arg(long)]
    all: bool,
}

fn parse_beginning(text: &str) -> Result<String, String> {
    let beginning = text.strip_suffix('*').filter(|beginning| !beginning.contains('*'));
    let beginning = beginning.map(str::to_owned);
    beginning.ok_or_else(|| "write the beginning of the names and one * behind it, such as 'tenant-*'".to_owned())
}

impl Scoped {
    /// The scope that was typed; clap sees to it that exactly one was.
    pub(super) fn scope(self) -> LimitScope {
        let Self { queue, kind, group, groups, all: _ } = self;
        queue
            .map(LimitScope::Queue)
            .or(kind.map(LimitScope::Kind))
            .or(group.map(LimitScope::Group))
            .or(groups.map(LimitScope::Groups))
            .unwrap_or(LimitScope::All)
    }
}

/// The scope as people read it.
pub(crate) fn scope_text(scope: &LimitScope) -> String {
    match scope {
        LimitScope::All => "everything".to_owned(),
        LimitScope::Queue(queue) => format!("queue {queue}"),
        LimitScope::Kind(kind) => format!("kind {kind}"),
        LimitScope::Group(group) => format!("group {group}"),
        LimitScope::Groups(beginning) => format!("each group {beginning}*"),
    }
}
