//! The bounds of templates.

use std::time::Duration;

/// The most bytes of a template's file.
pub const TEMPLATE_BYTES: usize = 1024 * 1024;

/// The most steps of a template.
pub const STEPS: usize = 1000;

/// The most entries of `depends_on` and of `chooses` of one step.
pub const DEPENDENCIES_OF_STEP: usize = 1000;

/// The most levels that lists and maps nest in a template.
pub const YAML_DEPTH: usize = 64;

/// The most keys and values that a file has. It bounds time and memory where
/// [`TEMPLATE_BYTES`] does not: two bytes are enough for a value.
pub const YAML_NODES: usize = 100_000;

/// The most keys and values that all aliases of a file repeat together.
pub const YAML_REPLAYED: usize = 10_000;

/// The most bytes of texts that all aliases of a file repeat together.
pub const YAML_REPLAYED_BYTES: usize = TEMPLATE_BYTES;

/// The most items of a step that are open at once.
pub const PARALLEL: u64 = 10_000;

/// The most environments of a template.
pub const ENVIRONMENTS: usize = 32;

/// The most errors that are reported of one file.
pub const ERRORS_REPORTED: usize = 20;

/// The most bytes of one JSON Schema, written as JSON without white space.
pub const SCHEMA_BYTES: usize = 64 * 1024;

/// The longest duration of a template: ten years.
pub const LONGEST_DURATION: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The most columns of a source line that an error shows.
pub const EXCERPT_COLUMNS: usize = 120;

/// The most characters of a name or a value that an error shows.
pub const SHOWN: usize = 80;
