//! `GET /v1/orchestrations/{id}/tree`.

use std::collections::VecDeque;

use axum::http::Method;
use onward_store::{Page as StorePage, StoreReads as _, TaskFilter, TaskId, TaskRecord};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::routes::route::{Access, Route, route};
use crate::http::routes::tasks::record;
use crate::http::wire::{Reply, TaskBody, json};

pub(super) fn table() -> Vec<Route> {
    let viewer = Access::Needs(Role::Viewer);
    vec![
        route(
            Method::GET,
            "/v1/orchestrations/{id}/tree",
            viewer,
            "Returns an orchestration and the tasks that it and they submitted.",
            tree,
        )
        .returns::<TreeBody>(200, "The tasks, level by level."),
    ]
}

/// A task and its descendants.
#[derive(Debug, Serialize, ToSchema)]
struct TreeBody {
    /// The tasks, each behind its parent and the older ones of its level; at most 1000.
    tasks: Vec<TaskBody>,
    /// The ids of tasks that may have more children than are listed. `GET /v1/tasks?parent=ID`
    /// lists them.
    cut: Vec<String>,
}

async fn tree(call: Call) -> Reply {
    let root = record(&call).await?;
    let mut tree = Tree { ahead: VecDeque::from([root.id]), tasks: vec![root], cut: Vec::new() };
    for _ in 0..bounds::TREE_READS {
        let Some(parent) = tree.ahead.pop_front() else { break };
        tree.read_children(&call, parent).await?;
    }
    let cut = tree.cut.iter().chain(&tree.ahead).map(ToString::to_string).collect();
    json(&TreeBody { tasks: tree.tasks.into_iter().map(|task| TaskBody::new(task, false)).collect(), cut })
}

/// A tree that is read level by level, so that a large one is cut far from its root.
struct Tree {
    tasks: Vec<TaskRecord>,
    /// The tasks whose children were not read.
    ahead: VecDeque<TaskId>,
    /// The tasks whose children are not all listed.
    cut: Vec<TaskId>,
}

impl Tree {
    async fn read_children(&mut self, call: &Call, parent: TaskId) -> Result<(), Problem> {
        let limit = bounds::TREE_TASKS.saturating_sub(self.tasks.len());
        if limit == 0 {
            self.cut.push(parent);
            return Ok(());
        }
        let filter = TaskFilter { parent: Some(parent), ..TaskFilter::default() };
        let page = call.server.store.tasks(filter, StorePage { before: None, limit }).await?;
        if page.next.is_some() {
            self.cut.push(parent);
        }
        for child in page.tasks.into_iter().rev() {
            self.ahead.push_back(child.id);
            self.tasks.push(child);
        }
        Ok(())
    }
}
