//! `GET /v1/runs/{id}/graph`: the steps of a run at their positions in a drawing.

use std::collections::HashMap;

use axum::http::Method;
use onward::workflow::layout::{EdgePath, Layout, Position, fold, layout};
use onward::workflow::{RunView, StepState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::runs::{StepBody, run_id};
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    vec![
        route(
            Method::GET,
            "/v1/runs/{id}/graph",
            Access::Needs(Role::Viewer),
            "Returns the graph of a run, with positions.",
            graph,
        )
        .query::<GraphQuery>()
        .returns::<GraphBody>(200, "The graph."),
    ]
}

/// The way of drawing.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct GraphQuery {
    /// True draws a path of completed steps as one node if the run has more than 200 steps.
    /// Default: false.
    fold: Option<bool>,
}

/// The graph of a run. The unit of positions is the distance of two nodes; `x` grows with the
/// dependencies.
#[derive(Debug, Serialize, ToSchema)]
struct GraphBody {
    /// The id of the run.
    id: String,
    /// The name of the template.
    workflow: String,
    /// The phase.
    phase: &'static str,
    /// True if the run is paused.
    paused: bool,
    /// True if the run has ended.
    is_ended: bool,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The number of columns.
    columns: usize,
    /// The number of rows, which may be broken.
    rows: f32,
    /// The steps.
    nodes: Vec<NodeBody>,
    /// The dependencies.
    edges: Vec<EdgeBody>,
}

/// A step at its position.
#[derive(Debug, Serialize, ToSchema)]
struct NodeBody {
    /// The column, from 0.
    x: f32,
    /// The row, from 0.
    y: f32,
    /// The step; the last one of a path.
    step: StepBody,
    /// The steps before it on the path that the node stands for. Without `fold` there are none.
    folded: Vec<StepBody>,
}

/// A dependency.
#[derive(Debug, Serialize, ToSchema)]
struct EdgeBody {
    /// The step of the node that goes first.
    from: String,
    /// The step of the node that depends on it.
    to: String,
    /// The positions between the two, each as `[x, y]`.
    waypoints: Vec<[f32; 2]>,
}

async fn graph(call: Call) -> Reply {
    let GraphQuery { fold } = call.query()?;
    let run = call.server.engine.run_view(run_id(&call).await?).await?;
    json(&body(run, fold.unwrap_or(false)))
}

/// Returns the numbers of the steps that each step depends on.
fn predecessors(run: &RunView) -> Vec<Vec<usize>> {
    let numbers: HashMap<&str, usize> =
        run.steps.iter().enumerate().map(|(number, step)| (step.name.as_str(), number)).collect();
    let of = |names: &Vec<String>| names.iter().filter_map(|name| numbers.get(name.as_str()).copied()).collect();
    run.steps.iter().map(|step| of(&step.depends_on)).collect()
}

/// Returns the steps of each node, the last one last, and the nodes that each node depends on.
fn nodes(run: &RunView, is_folded: bool) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let predecessors = predecessors(run);
    if !is_folded || run.steps.len() <= bounds::GRAPH_UNFOLDED {
        return ((0..run.steps.len()).map(|step| vec![step]).collect(), predecessors);
    }
    let nodes = fold(&predecessors, |step| run.steps[step].state == StepState::Completed);
    let mut node_of = vec![0; run.steps.len()];
    for (node, steps) in nodes.iter().enumerate() {
        steps.iter().for_each(|step| node_of[*step] = node);
    }
    let before = |steps: &Vec<usize>| predecessors[steps[0]].iter().map(|step| node_of[*step]).collect();
    let edges = nodes.iter().map(before).collect();
    (nodes, edges)
}

fn body(run: RunView, is_folded: bool) -> GraphBody {
    let (nodes, predecessors) = nodes(&run, is_folded);
    let Layout { nodes: positions, edges, columns, rows, .. } = layout(&predecessors);
    let (phase, is_ended) = (run.phase.as_str(), run.is_ended());
    let last = |steps: &Vec<usize>| steps.last().map_or_else(String::new, |step| run.steps[*step].name.clone());
    let names: Vec<String> = nodes.iter().map(last).collect();
    let mut steps: Vec<Option<StepBody>> = run.steps.into_iter().map(|step| Some(step.into())).collect();
    let mut take = |numbers: &Vec<usize>| numbers.iter().filter_map(|step| steps[*step].take()).collect::<Vec<_>>();
    let nodes = nodes
        .iter()
        .zip(&positions)
        .filter_map(|(numbers, at)| {
            let mut folded = take(numbers);
            let step = folded.pop()?;
            Some(NodeBody { x: at.x, y: at.y, step, folded })
        })
        .collect();
    let pair = |at: &Position| [at.x, at.y];
    let edge = |edge: &EdgePath| EdgeBody {
        from: names[edge.from].clone(),
        to: names[edge.to].clone(),
        waypoints: edge.waypoints.iter().map(pair).collect(),
    };
    let edges = edges.iter().map(edge).collect();
    GraphBody {
        id: run.id.to_string(),
        workflow: run.workflow,
        phase,
        paused: run.is_paused,
        is_ended,
        error: run.error,
        columns,
        rows,
        nodes,
        edges,
    }
}
