//! The graphs of the rows: a template, an input, and the result that a run must have.

use anyhow::{Result, bail};
use onward::workflow::template::TemplateFile;
use serde_json::{Value, json};

use super::handlers::Totals;

/// A graph.
pub(crate) struct Graph {
    pub(crate) file: TemplateFile,
    pub(crate) input: u64,
    pub(crate) result: Value,
}

const LINEAR: &str = "
- {task: square, with: '${{ [input] }}'}
- {task: square, with: '${{ [steps.step_1.result] }}'}
- {task: square, with: '${{ [steps.step_2.result] }}'}
- {task: square, with: '${{ [steps.step_3.result] }}'}";

const DIAMOND: &str = "
steps:
  begin: {task: square, with: '${{ [input] }}'}
  b: {task: square, with: '${{ [steps.begin.result] }}', depends_on: [begin]}
  c: {task: square, with: '${{ [steps.begin.result] }}', depends_on: [begin]}
  end: {task: square, with: '${{ [steps.b.result, steps.c.result] }}', depends_on: [b, c]}";

const DAG: &str = "
steps:
  init: {task: square, with: '${{ [input] }}'}
  left: {task: sum, with: '${{ [steps.init.result, 1] }}', depends_on: [init]}
  right: {task: sum, with: '${{ [steps.init.result, 2] }}', depends_on: [init]}
  validate: {task: sum, with: '${{ [steps.left.result, steps.right.result] }}', depends_on: [left, right]}
  transform: {task: square, with: '${{ [steps.left.result] }}', depends_on: [left]}
  analyze: {task: square, with: '${{ [steps.right.result] }}', depends_on: [right]}
  finalize:
    task: sum
    with: '${{ [steps.validate.result, steps.transform.result, steps.analyze.result] }}'
    depends_on: [validate, transform, analyze]";

const TREE: &str = "
steps:
  root: {task: square, with: '${{ [input] }}'}
  l: {task: sum, with: '${{ [steps.root.result, 1] }}', depends_on: [root]}
  r: {task: sum, with: '${{ [steps.root.result, 2] }}', depends_on: [root]}
  ll: {task: sum, with: '${{ [steps.l.result, 1] }}', depends_on: [l]}
  lr: {task: sum, with: '${{ [steps.l.result, 2] }}', depends_on: [l]}
  rl: {task: sum, with: '${{ [steps.r.result, 1] }}', depends_on: [r]}
  rr: {task: sum, with: '${{ [steps.r.result, 2] }}', depends_on: [r]}
  end:
    task: sum
    with: '${{ [steps.ll.result, steps.lr.result, steps.rl.result, steps.rr.result] }}'
    depends_on: [ll, lr, rl, rr]";

const CONDITIONAL: &str = "
steps:
  validate: {task: sum, with: '${{ [input] }}'}
  route: {task: route, with: '${{ [steps.validate.result] }}', depends_on: [validate], chooses: [auto, manager, both]}
  auto: {task: sum, with: '${{ [steps.validate.result, 1] }}', depends_on: [validate]}
  manager: {task: sum, with: '${{ [steps.validate.result, 2] }}', depends_on: [validate]}
  both: {task: sum, with: '${{ [steps.validate.result, 3] }}', depends_on: [validate]}
  end: {task: sum, with: '${{ [steps.validate.result] }}', depends_on: [auto, manager, both]}";

const BATCH: &str = "
steps:
  rows: {each: {from: 0, to: 1000, by: 200}, task: totals, with: '${{ [item.from, item.to] }}'}
  merged: {task: merge, with: '${{ steps.rows.result }}', depends_on: [rows]}";

/// Returns the graph of a workload.
pub(crate) fn graph(workload: &str) -> Result<Graph> {
    let (text, input, result) = match workload {
        "workflow_linear" => (LINEAR, 6, json!(6_u64.pow(16))),
        "workflow_diamond" => (DIAMOND, 6, json!(6_u64.pow(16))),
        // 36; 37 and 38; 75, 1369 and 1444; 2888.
        "workflow_dag" => (DAG, 6, json!(2888)),
        // 36; 37 and 38; 38, 39, 39 and 40; 156.
        "workflow_tree" => (TREE, 6, json!(156)),
        "workflow_conditional" => (CONDITIONAL, 500, json!(500)),
        "workflow_batch" => (BATCH, 0, serde_json::to_value(Totals::of(0..1000))?),
        other => bail!("there is no graph of `{other}`"),
    };
    Ok(Graph { file: read("graph.yaml", text)?, input, result })
}

/// Reads a template that this program has.
pub(crate) fn read(file: &str, text: &str) -> Result<TemplateFile> {
    TemplateFile::read(file, text).map_err(|errors| anyhow::anyhow!("{errors}"))
}
