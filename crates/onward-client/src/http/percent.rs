//! Percent encoding of paths and queries.

use std::fmt::Write as _;

/// Returns a text as a segment of a path, or as a name or value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_separates_is_encoded() {
        assert_eq!(encoded("go now/ä?"), "go%20now%2F%C3%A4%3F");
        assert_eq!(encoded("order@v2"), "order@v2");
    }
}
