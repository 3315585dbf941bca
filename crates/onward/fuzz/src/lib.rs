//! The fuzz targets of workflows. Each checks the properties that hold for every input.

/// Reads a text as a template.
pub fn workflow_template(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        onward::workflow::template::exercise(text);
    }
}

/// Parses and evaluates a text, as an expression and as a text that may hold some.
pub fn workflow_expression(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        onward::workflow::expression::exercise(text);
    }
}

/// Decodes and folds the history of a run, and decides turns behind it.
pub fn workflow_history(data: &[u8]) {
    onward::workflow::exercise_history(data);
}
