//! Runs every example to its end, so that none of them stops working unnoticed.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::artifacts::{self, Artifact, Kind};
use crate::ci::Verdict;
use crate::command;
use crate::project::Project;

/// The time limit of one example.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs each example in an empty directory of its own.
pub(crate) fn run(project: &Project) -> Result<Verdict> {
    let mut examples: Vec<Artifact> =
        artifacts::build(project)?.into_iter().filter(|artifact| artifact.kind == Kind::Example).collect();
    examples.sort_by(|a, b| a.name.cmp(&b.name));
    let Some(_) = examples.first() else {
        return Ok(Verdict::Skipped("there are no examples yet".into()));
    };
    let mut failed = Vec::new();
    for example in &examples {
        let directory = project.scratch(&format!("examples/{}", example.name))?;
        if let Err(error) = command::run_within(Command::new(&example.path).current_dir(directory), LIMIT) {
            println!("{error:#}");
            failed.push(example.name.as_str());
        }
    }
    if !failed.is_empty() {
        bail!("these examples failed: {}", failed.join(", "));
    }
    Ok(Verdict::Passed)
}
