//! The bounds of expressions.

/// The most bytes of one expression's source.
pub const EXPRESSION_BYTES: usize = 4 * 1024;

/// The most levels that the parts of an expression nest.
pub const EXPRESSION_DEPTH: usize = 64;

/// The most operations of one evaluation: nodes visited, elements read or made, and texts in
/// pieces of [`TEXT_PER_OPERATION`].
pub const EXPRESSION_OPERATIONS: u64 = 100_000;

/// The most operations of all evaluations in one turn of a run.
pub const TURN_OPERATIONS: u64 = 10_000_000;

/// The most bytes of a result, written as JSON.
pub const EXPRESSION_RESULT: usize = 1024 * 1024;

/// The most levels that lists and maps nest in a value that an expression makes. JSON readers
/// commonly reject more than 128, so this leaves room for what the value is put into.
pub const VALUE_DEPTH: usize = 100;

/// The bytes of text that one operation reads or makes.
pub const TEXT_PER_OPERATION: usize = 64;

/// The most bytes of a pattern of `matches`.
pub const PATTERN_BYTES: usize = 1024;

/// The most bytes of a compiled pattern.
pub const PATTERN_COMPILED: usize = 64 * 1024;

/// The most bytes of the states that one search of a pattern builds before it uses the slower
/// method that needs no memory.
pub const PATTERN_STATES: usize = 128 * 1024;

/// The operations that compiling costs for each byte of a pattern.
pub const OPERATIONS_PER_PATTERN_BYTE: u64 = 32;

/// The most fields that an error names.
pub const FIELDS_NAMED: usize = 8;
