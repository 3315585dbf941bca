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
mod lengths;
mod links;
mod locks;
mod map;
mod modules;
mod profiles;
mod prose;
mod prose_of_documents;
mod retired_words;
mod root;
mod sizes;
mod sleeps;
mod stores;
mod words;

pub(crate) use checks::{Options, run};
pub(crate) use finding::Finding;
pub(crate) use prose::{Fault, faults};
pub(crate) use prose_of_documents::faults_of_document;
#[cfg(test)]
pub(crate) use sizes::FEATURES_BYTES;
