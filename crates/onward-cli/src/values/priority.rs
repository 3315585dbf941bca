//! Priorities: a number, or a name.

use onward_store::Priority;

/// The priorities that have a name.
const NAMES: [(&str, Priority); 4] =
    [("low", Priority::LOW), ("normal", Priority::NORMAL), ("high", Priority::HIGH), ("urgent", Priority::URGENT)];

/// Reads a priority.
pub(crate) fn parse_priority(text: &str) -> Result<Priority, String> {
    let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, priority)| *priority);
    named
        .or_else(|| text.parse().ok().map(Priority))
        .ok_or_else(|| format!("`{text}` is not a priority; write low, normal, high, urgent or a number from 0 to 255"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_number_or_a_name() {
        let read = ["0", "low", "normal", "high", "urgent", "255"].map(|text| parse_priority(text).unwrap().0);
        assert_eq!(read, [0, 32, 128, 192, 255, 255]);
    }

    #[test]
    fn another_text_is_refused_with_the_names() {
        for text in ["", "256", "-1", "asap"] {
            assert!(parse_priority(text).unwrap_err().contains("low, normal, high, urgent"), "{text}");
        }
    }
}
