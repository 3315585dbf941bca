//! Numbers of rows.

/// Reads the largest number of rows to show, which is at least 1.
pub(crate) fn parse_row_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("`{text}` is not a number of rows; give a whole number from 1 up"))
}
