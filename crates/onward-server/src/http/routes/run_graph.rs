//! `GET /v1/runs/{id}/graph`: the steps of a run at their positions in a drawing.

use std::collections::HashMap;

use axum::http::Method;
use onward::workflow::RunView;
use onward::workflow::layout::{EdgePath, Layout, Position, layout};
use serde::Serialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::runs::{StepBody, run_id};
use crate::http::access::Role;
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
        .returns::<GraphBody>(200, "The graph."),
    ]
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
    /// The step.
    step: StepBody,
}

/// A dependency.
#[derive(Debug, Serialize, ToSchema)]
struct EdgeBody {
    /// The step that goes first.
    from: String,
    /// The step that depends on it.
    to: String,
    /// The positions between the two, each as `[x, y]`.
    waypoints: Vec<[f32; 2]>,
}

async fn graph(call: Call) -> Reply {
    let run = call.server.engine.run_view(run_id(&call).await?).await?;
    let layout = layout(&predecessors(&run));
    json(&body(run, layout))
}

/// Returns the numbers of the steps that each step depends on.
fn predecessors(run: &RunView) -> Vec<Vec<usize>> {
    let numbers: HashMap<&str, usize> =
        run.steps.iter().enumerate().map(|(number, step)| (step.name.as_str(), number)).collect();
    let of = |names: &Vec<String>| names.iter().filter_map(|name| numbers.get(name.as_str()).copied()).collect();
    run.steps.iter().map(|step| of(&step.depends_on)).collect()
}

fn body(run: RunView, layout: Layout) -> GraphBody {
    let pair = |at: &Position| [at.x, at.y];
    let edge = |edge: &EdgePath| EdgeBody {
        from: run.steps[edge.from].name.clone(),
        to: run.steps[edge.to].name.clone(),
        waypoints: edge.waypoints.iter().map(pair).collect(),
    };
    let edges = layout.edges.iter().map(edge).collect();
    let (phase, is_ended) = (run.phase.as_str(), run.is_ended());
    let nodes = run.steps.into_iter().zip(&layout.nodes);
    GraphBody {
        id: run.id.to_string(),
        workflow: run.workflow,
        phase,
        paused: run.is_paused,
        is_ended,
        columns: layout.columns,
        rows: layout.rows,
        nodes: nodes.map(|(step, at)| NodeBody { x: at.x, y: at.y, step: step.into() }).collect(),
        edges,
    }
}
