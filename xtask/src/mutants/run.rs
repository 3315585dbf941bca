//! `cargo xtask mutants`: applies one mutant at a time to a copy of the project, and checks that
//! its test fails.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::patch::{self, Patch, Test};
use super::table::{Row, Verdict, table};
use super::tree::Tree;
use crate::backends::postgres::Server;
use crate::project::Project;
use crate::{artifacts, command};

/// The time limit of a test, after which it counts as failed, because a mutant may hang.
const LIMIT: Duration = Duration::from_secs(90);

/// The number of seeds within which the simulation must find a mutant.
const SIMULATED_SEEDS: &str = "300";

/// The beginning of the line with which the simulation reports the seed that failed.
const FAILED_SEED: &str = "failed with seed ";

/// The arguments of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Try only these, by the names of their files in xtask/mutants without `.patch`. Default: all.
    names: Vec<String>,
    /// Print the verdicts as JSON on standard output; progress goes to standard error in any case.
    #[arg(long)]
    json: bool,
}

/// Tries the mutants. Returns an error unless all of them are caught.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let all = patch::all(project)?;
    let patches = chosen(&all, &options.names)?;
    let runs = MutantRuns { tree: Tree::copy(project)?, project, postgres: OnceCell::new() };
    let sound = runs.sound_tests(&patches)?;
    let mut rows = Vec::new();
    for (number, patch) in patches.iter().enumerate() {
        eprint!("{:2}/{} {} … ", number + 1, patches.len(), patch.name);
        let started = command::now();
        let verdict = if sound.contains(&patch.name) { runs.try_patch(patch)? } else { Verdict::FailsAnyway };
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("{verdict} ({seconds:.1} s)");
        rows.push(row(patch, verdict, seconds, runs.failed_seed(&patch.name)?));
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        println!("\n{}", table(&rows));
    }
    let escaped = rows.iter().filter(|row| !row.is_caught()).count();
    ensure!(escaped == 0, "{escaped} of {} were not caught; target/mutants/NAME.log says what happened", rows.len());
    Ok(())
}

/// Returns whether a test needs a PostgreSQL server.
fn needs_postgres(test: &Test) -> bool {
    test.path.starts_with("postgres::")
}

fn row(patch: &Patch, verdict: Verdict, seconds: f64, seed: Option<String>) -> Row {
    let Patch { name, breaks, test: Test { package, path }, .. } = patch.clone();
    Row { name, breaks, package, test: path, verdict, seconds, seed }
}

fn chosen(all: &[Patch], names: &[String]) -> Result<Vec<Patch>> {
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|patch| patch.name == **name)) {
        let known: Vec<&str> = all.iter().map(|patch| patch.name.as_str()).collect();
        bail!("there is no variant `{unknown}`; there are: {}", known.join(", "));
    }
    let is_chosen = |patch: &&Patch| names.is_empty() || names.contains(&patch.name);
    Ok(all.iter().filter(is_chosen).cloned().collect())
}

/// The copy of the project in which mutants are made and tried.
struct MutantRuns<'a> {
    tree: Tree,
    project: &'a Project,
    /// The server for tests of PostgreSQL, started for the first of them.
    postgres: OnceCell<Server>,
}

impl MutantRuns<'_> {
    /// Returns the mutants whose test exists and passes on the unchanged code. A test that fails
    /// anyway would seem to catch every mutant.
    fn sound_tests(&self, patches: &[Patch]) -> Result<BTreeSet<String>> {
        eprintln!("the tests without any variant …");
        let mut sound = BTreeSet::new();
        for patch in patches {
            let log = format!("{}-unbroken", patch.name);
            self.forget_log(&log)?;
            let program = self.build(&patch.test, &log)?;
            let program =
                program.with_context(|| format!("the project does not build; see target/mutants/{log}.log"))?;
            if self.passes(&program, &patch.test, &log)? && self.has_run_a_test(&log)? {
                sound.insert(patch.name.clone());
            }
        }
        Ok(sound)
    }

    fn try_patch(&self, patch: &Patch) -> Result<Verdict> {
        if let Err(error) = patch::apply(self.tree.root(), &self.project.path(&patch.path)) {
            eprintln!("{error:#}");
            return Ok(Verdict::DoesNotApply);
        }
        let verdict = self.verdict_of(patch);
        self.tree.restore(self.project)?;
        verdict
    }

    fn verdict_of(&self, patch: &Patch) -> Result<Verdict> {
        self.forget_log(&patch.name)?;
        let Some(program) = self.build(&patch.test, &patch.name)? else { return Ok(Verdict::DoesNotBuild) };
        let passes = self.passes(&program, &patch.test, &patch.name)?;
        Ok(if passes { Verdict::Survived } else { Verdict::Caught })
    }

    /// Builds the test program. Returns `None` if it does not build.
    fn build(&self, test: &Test, log: &str) -> Result<Option<PathBuf>> {
        let mut cargo = command::cargo();
        cargo.args(["test", "--package", &test.package, "--test", "it", "--no-run", "--message-format=json"]);
        if needs_postgres(test) {
            cargo.arg(format!("--features={}/postgres", test.package));
        }
        cargo.current_dir(self.tree.root()).env("CARGO_TARGET_DIR", self.project.path("target/mutants/build"));
        // Cargo set this variable for the project, not for the copy.
        cargo.env_remove("CARGO_MANIFEST_DIR").stdin(Stdio::null()).stderr(self.log(log)?);
        let output = cargo.output().context("cannot start cargo")?;
        if !output.status.success() {
            return Ok(None);
        }
        let program = artifacts::test_program(&String::from_utf8_lossy(&output.stdout), "it");
        Ok(Some(program.context("cargo built no test program `it`")?))
    }

    /// Returns whether the test passes. Runs the program directly, so that a test that hangs can be
    /// killed.
    fn passes(&self, program: &Path, test: &Test, log: &str) -> Result<bool> {
        let log = self.log(log)?;
        let mut run = Command::new(program);
        run.args(["--exact", &test.path]).current_dir(self.tree.root().join("crates").join(&test.package));
        run.env("ONWARD_SEEDS", SIMULATED_SEEDS).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if needs_postgres(test) {
            run.envs(self.postgres()?.variables()).env("ONWARD_REQUIRE_BACKENDS", "postgres");
        }
        command::succeeds_within(&mut run, LIMIT)
    }

    fn postgres(&self) -> Result<&Server> {
        if self.postgres.get().is_none() {
            let _ = self.postgres.set(Server::start()?);
        }
        self.postgres.get().context("PostgreSQL was not started")
    }

    fn log(&self, name: &str) -> Result<File> {
        let path = self.project.path("target/mutants").join(format!("{name}.log"));
        let options = File::options().create(true).append(true).open(&path);
        options.with_context(|| format!("cannot write {}", path.display()))
    }

    fn forget_log(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.project.path("target/mutants").join(format!("{name}.log"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns the seed with which the simulation found a mutant, and the number of seeds before
    /// it.
    fn failed_seed(&self, name: &str) -> Result<Option<String>> {
        let path = format!("target/mutants/{name}.log");
        if !self.project.path(&path).exists() {
            return Ok(None);
        }
        let log = self.project.read(&path)?;
        Ok(log.lines().find_map(|line| line.strip_prefix(FAILED_SEED)).map(str::to_owned))
    }

    fn has_run_a_test(&self, log: &str) -> Result<bool> {
        Ok(self.project.read(&format!("target/mutants/{log}.log"))?.contains("\nrunning 1 test\n"))
    }
}
