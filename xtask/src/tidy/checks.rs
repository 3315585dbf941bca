//! The list of checks, and the function that runs them.

use anyhow::{Context as _, Result, bail};

use super::exceptions::Exceptions;
use super::language::{prose, retired_words, script_comments, words};
use super::{
    Finding, architecture, changelog, commands, dependencies, files, fixtures, growing_types, lengths, links, locks,
    map, modules, profiles, root, sizes, sleeps, stores,
};
use crate::project::Project;
use crate::source::SourceFile;
use crate::{command, features, reference};

/// The arguments of `cargo xtask tidy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only this check; `list` prints the names of all.
    #[arg(long, value_name = "CHECK")]
    only: Option<String>,
}

impl Options {
    /// Returns the options that run every check.
    pub(crate) fn all() -> Self {
        Self { only: None }
    }
}

/// The input of the checks, read once.
struct Inputs<'a> {
    project: &'a Project,
    sources: Vec<SourceFile>,
    documents: Vec<(String, String)>,
    /// Files of other languages that have comments.
    scripts: Vec<(String, String)>,
    exceptions: Exceptions,
    metadata: serde_json::Value,
}

type Check = fn(&Inputs<'_>) -> Result<Vec<Finding>>;

/// The checks: name, the property that each guards, and the function.
const CHECKS: &[(&str, &str, Check)] = &[
    ("architecture", "crates depend on each other as ARCHITECTURE.md says, and it names every crate", |inputs| {
        architecture::check(&inputs.project.read("ARCHITECTURE.md")?, &inputs.metadata)
    }),
    ("map", "the files that ARCHITECTURE.md names exist", |inputs| {
        Ok(map::check(&inputs.project.read("ARCHITECTURE.md")?, inputs.project.files()))
    }),
    ("dependencies", "docs/dependencies.md says why each direct dependency is there", |inputs| {
        dependencies::check(&inputs.project.read("docs/dependencies.md")?, &inputs.metadata)
    }),
    ("lengths", "functions and files stay short", |inputs| Ok(lengths::check(&inputs.sources, &inputs.exceptions))),
    ("growing-types", "public types that will grow are marked non-exhaustive", |inputs| {
        Ok(growing_types::check(&inputs.sources))
    }),
    ("words", "names and comments avoid words that say nothing", |inputs| Ok(words::check(&inputs.sources))),
    (
        "prose",
        "comments, of all languages, and documents open with a verb or a noun, name the actor, and are short and narrow",
        |inputs| Ok(prose::check(&inputs.sources, &inputs.documents, &inputs.scripts, &inputs.exceptions.prose)),
    ),
    ("retired-words", "identifiers, comments and documents use the one word of each concept", |inputs| {
        let Inputs { sources, scripts, documents, exceptions, .. } = inputs;
        Ok(retired_words::check(sources, scripts, documents, &exceptions.retired_word))
    }),
    ("sleeps", "tests do not sleep", |inputs| Ok(sleeps::check(&inputs.sources, &inputs.exceptions))),
    ("stores", "cases of the engine that leave a store out say why", |inputs| {
        stores::check(&inputs.project.read(stores::LIST)?, &inputs.sources)
    }),
    ("fixtures", "CONTRIBUTING.md lists the stores of the conformance suite, and `--all` starts the rest", |inputs| {
        Ok(fixtures::check(&inputs.project.read("CONTRIBUTING.md")?, &inputs.sources))
    }),
    ("profiles", "ordinary builds do not optimize macros and our own crates", profiles),
    ("locks", "lock files of other workspaces know the dependencies of our crates", locks),
    ("modules", "a mod.rs holds no logic", |inputs| Ok(modules::check(&inputs.sources))),
    ("links", "relative links in documents lead somewhere", |inputs| {
        Ok(links::check(&inputs.documents, inputs.project.files()))
    }),
    ("commands", "commands in documents exist", |inputs| {
        Ok(commands::check(&inputs.documents, &inputs.project.read("docs/reference/cli.md")?))
    }),
    ("changelog", "CHANGELOG.md has known headings and short entries, verb first", |inputs| {
        Ok(changelog::check(&inputs.project.read("CHANGELOG.md")?))
    }),
    ("sizes", "design notes and the page of features are short enough to be read", |inputs| {
        Ok(sizes::check(&inputs.documents))
    }),
    ("root", "the root directory stays small", |inputs| Ok(root::check(inputs.project.files()))),
    ("files", "files that are not sources stay few", |inputs| Ok(files::check(inputs.project.files()))),
    ("features", "docs/features.md is fresh, and every claimed feature has a test", |inputs| {
        features::check(inputs.project, false)
    }),
    ("reference", "docs/reference is what the program says of itself", |inputs| reference::check(inputs.project)),
];

fn locks(inputs: &Inputs<'_>) -> Result<Vec<Finding>> {
    let others = inputs.project.files_with("lock").filter(|path| locks::is_of_another_workspace(path));
    let check = |path| locks::check(path, &inputs.project.read(path)?, &inputs.metadata);
    let found: Vec<Vec<Finding>> = others.map(check).collect::<Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn profiles(inputs: &Inputs<'_>) -> Result<Vec<Finding>> {
    let check = |path: &&str| profiles::check(path, &inputs.project.read(path)?, &inputs.metadata);
    let found: Vec<Vec<Finding>> = profiles::MANIFESTS.iter().map(check).collect::<Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Runs the checks. Returns an error if any has a finding.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.only.as_deref() == Some("list") {
        CHECKS.iter().for_each(|(name, what, _)| println!("{name:13} {what}"));
        return Ok(());
    }
    let chosen: Vec<_> =
        CHECKS.iter().filter(|(name, ..)| options.only.as_deref().is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        bail!("there is no such check; `cargo xtask tidy --only list` names them all");
    }
    let inputs = read(project)?;
    let mut findings = 0;
    for (name, what, check) in chosen {
        let found = check(&inputs).with_context(|| format!("the check `{name}` could not be done"));
        findings += report(name, what, found);
    }
    if findings > 0 {
        bail!("{findings} findings; CONTRIBUTING.md says why each rule is there");
    }
    Ok(())
}

/// Prints the findings of a check and returns their number. A check that failed to run counts as
/// one.
fn report(name: &str, what: &str, found: Result<Vec<Finding>>) -> usize {
    match found {
        Ok(findings) if findings.is_empty() => {
            println!("ok      {name:13} {what}");
            0
        }
        Ok(findings) => {
            println!("FAILED  {name:13} {what}");
            findings.iter().for_each(|finding| println!("    {finding}"));
            findings.len()
        }
        Err(error) => {
            println!("FAILED  {name:13} {error:#}");
            1
        }
    }
}

fn read(project: &Project) -> Result<Inputs<'_>> {
    let source = |path: &str| Ok(SourceFile::new(path, project.read(path)?));
    let document = |path: &str| Ok((path.to_owned(), project.read(path)?));
    let metadata = command::output(
        command::cargo().args(["metadata", "--format-version=1", "--no-deps"]).current_dir(project.root()),
    )?;
    Ok(Inputs {
        project,
        sources: project.files_with("rs").map(source).collect::<Result<_>>()?,
        documents: project.files_with("md").map(document).collect::<Result<_>>()?,
        scripts: script_comments::files(project).map(document).collect::<Result<_>>()?,
        exceptions: Exceptions::parse(&project.read("xtask/tidy.toml")?)?,
        metadata: serde_json::from_str(&metadata).context("cargo metadata did not write JSON")?,
    })
}
