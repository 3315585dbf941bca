//! Checks of style and structure. Each is a plain function from text to findings, so that its tests
//! can show that it fails.

mod architecture;
mod changelog;
mod checks;
mod commands;
mod dependencies;
mod exceptions;
mod files;
mod finding;
mod fixtures;
mod growing_types;
mod language;
mod lengths;
mod links;
mod locks;
mod map;
mod modules;
mod profiles;
mod root;
mod sizes;
mod sleeps;
mod stores;

pub(crate) use checks::{Options, run};
pub(crate) use finding::Finding;
pub(crate) use language::prose::{Fault, FaultAt, faults};
pub(crate) use language::prose_of_documents::faults_of_document;
pub(crate) use language::prose_of_scripts::faults_of_script;
pub(crate) use language::script_comments;
#[cfg(test)]
pub(crate) use sizes::FEATURES_BYTES;
