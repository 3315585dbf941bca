//! `cargo xtask prose`: lists the comments that break the rules of prose.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::project::Project;
use crate::source::SourceFile;
use crate::tidy::{Fault, FaultAt, faults, faults_of_document, faults_of_script, script_comments};

/// Arguments of `cargo xtask prose`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The file or folder to look at; default: the whole project
    #[arg(default_value = "")]
    path: String,
    /// Print only the numbers, by file
    #[arg(long)]
    count: bool,
}

/// Prints each place with a fault, or the number of faults of each file.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let mut counts: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let files = project.files_with("rs").chain(project.files_with("md")).chain(script_comments::files(project));
    for path in files.filter(|path| path.starts_with(&options.path)) {
        let text = project.read(path)?;
        for found in faults_of(path, &text) {
            counts.entry(path).or_default()[found.fault as usize] += 1;
            if !options.count {
                println!("{path}:{}: {}", found.line + 1, found.fault);
            }
        }
    }
    let mut sums = [0; 4];
    for (path, counts) in &counts {
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        if options.count {
            println!("{} {path}", shown(*counts));
        }
    }
    println!("{} in all: openers, unnamed actors, wide lines, long sentences", shown(sums));
    Ok(())
}

fn faults_of(path: &str, text: &str) -> Vec<FaultAt> {
    match path.rsplit('.').next() {
        Some("rs") => faults(&SourceFile::new(path, text)),
        Some("md") => faults_of_document(text),
        _ => faults_of_script(path, text),
    }
}

fn shown(counts: [usize; 4]) -> String {
    let at = |fault: Fault| counts[fault as usize];
    format!("{:4} {:4} {:4} {:4}", at(Fault::Opener), at(Fault::Actor), at(Fault::Wide), at(Fault::Long))
}
