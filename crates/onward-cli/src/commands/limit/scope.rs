//! The scope of a limit.

use clap::Args;
use onward_store::{LimitScope, Name};

/// One of: a queue, a kind, a group, the groups with a name prefix, everything.
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
    /// The tasks of each group with this name prefix, each group by itself: tenant-* or *
    #[arg(long, value_name = "PREFIX*", value_parser = parse_prefix)]
    groups: Option<String>,
    /// All tasks together
    #[arg(long)]
    all: bool,
}

fn parse_prefix(text: &str) -> Result<String, String> {
    let prefix = text.strip_suffix('*').filter(|prefix| !prefix.contains('*'));
    let prefix = prefix.map(str::to_owned);
    prefix.ok_or_else(|| "write the prefix of the names and one * after it, such as 'tenant-*'".to_owned())
}

impl Scoped {
    /// Returns the scope that the user typed. Clap ensures that there is exactly one.
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

/// Returns the scope as text for people.
pub(crate) fn scope_text(scope: &LimitScope) -> String {
    match scope {
        LimitScope::All => "everything".to_owned(),
        LimitScope::Queue(queue) => format!("queue {queue}"),
        LimitScope::Kind(kind) => format!("kind {kind}"),
        LimitScope::Group(group) => format!("group {group}"),
        LimitScope::Groups(prefix) => format!("each group {prefix}*"),
    }
}
