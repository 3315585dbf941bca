//! Sizes: `512`, `64KiB`, `4MiB`.

/// Reads a number of bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "KiB" => Some(1024),
        "MiB" => Some(1024 * 1024),
        _ => None,
    };
    let number = digits.parse::<usize>().ok();
    let bytes = number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    bytes.ok_or_else(|| format!("`{text}` is not a size; write it as 512, 64KiB or 4MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        assert_eq!(["512", "64KiB", "4MiB"].map(|text| parse_bytes(text).unwrap()), [512, 65_536, 4_194_304]);
    }

    #[test]
    fn a_size_in_an_unknown_unit_is_refused() {
        assert!(parse_bytes("4MB").unwrap_err().contains("64KiB or 4MiB"));
    }
}
