//! `cargo xtask features`: writes the page, checks it, or lists the tests behind a row.

use anyhow::{Context as _, Result, bail};

use super::catalogue::{self, Catalogue};
use super::evidence::Evidence;
use super::listing::listing;
use super::page::{self, page};
use super::problems::problems;
use crate::mutants;
use crate::project::Project;
use crate::tidy::Finding;

/// The arguments of `cargo xtask features`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// List the tests and mutants of these features or faults (`T4`, `lost-events`).
    ids: Vec<String>,
    /// Write nothing; fail if the page is not fresh.
    #[arg(long, conflicts_with = "ids")]
    check: bool,
    /// Treat features under way (`claimed = false`) as claimed, to find those without a test.
    #[arg(long, requires = "check")]
    strict: bool,
}

/// Lists rows, checks the page or writes it.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.check {
        return report(&check(project, options.strict)?);
    }
    let (catalogue, evidence) = read(project)?;
    for id in &options.ids {
        print!("{}", listing(&catalogue, &evidence, id)?);
    }
    if options.ids.is_empty() {
        let text = page(&catalogue, &evidence);
        std::fs::write(project.path(page::FILE), text).with_context(|| format!("cannot write {}", page::FILE))?;
        println!("wrote {}", page::FILE);
    }
    Ok(())
}

/// Finds a stale page, unknown names, and claimed features without a test.
pub(crate) fn check(project: &Project, strict: bool) -> Result<Vec<Finding>> {
    let (catalogue, evidence) = read(project)?;
    let mut findings = problems(&catalogue, &evidence, strict);
    findings.extend(mutants::check(project, &catalogue.names(), &catalogue.beaten())?);
    let written = if project.path(page::FILE).is_file() { project.read(page::FILE)? } else { String::new() };
    if written != page(&catalogue, &evidence) {
        findings.push(Finding::file(page::FILE, "is not fresh; run `cargo xtask features`"));
    }
    Ok(findings)
}

fn report(findings: &[Finding]) -> Result<()> {
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    Ok(())
}

fn read(project: &Project) -> Result<(Catalogue, Evidence)> {
    Ok((Catalogue::parse(&project.read(catalogue::FILE)?)?, Evidence::read(project)?))
}
