//! Sizes: `512`, `64KiB`, `4MiB`, `2GiB`, `1TiB`.

/// Reads a number of bytes that has to fit into memory.
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    parse_size(text).and_then(|bytes| usize::try_from(bytes).map_err(|_| format!("`{text}` is too large")))
}

/// Reads a number of bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "KiB" => Some(1024),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        "TiB" => Some(1 << 40),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
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
    fn sizes_of_disks_are_read() {
        assert_eq!(["2GiB", "1TiB"].map(|text| parse_size(text).unwrap()), [2_147_483_648, 1_099_511_627_776]);
        assert!(parse_size("99999999TiB").is_err());
    }

    #[test]
    fn a_size_in_an_unknown_unit_is_refused() {
        assert!(parse_bytes("4MB").unwrap_err().contains("64KiB or 4MiB"));
    }
}
