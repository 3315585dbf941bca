//! The cause of an error: its text without what differs from task to task.

use sha2::{Digest, Sha256};

use crate::bounds;

/// Words before numbers that belong to the cause: `HTTP 410` and `HTTP 500` are two causes.
const CODE_WORDS: [&str; 7] = ["http", "status", "code", "exit", "errno", "signal", "error"];

/// Returns a text with `#` for each word that has a digit, cut at a bound. A number that follows a
/// word such as `status` stays.
pub(super) fn general_text(text: &str) -> String {
    let mut general = String::new();
    let (mut word, mut before) = (String::new(), String::new());
    // The character at the end ends the last word.
    for character in text.trim().chars().chain(['\n']) {
        if character.is_alphanumeric() || matches!(character, '_' | '-') {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            let stays = !word.contains(|digit: char| digit.is_ascii_digit()) || is_code(&before, &word);
            general.push_str(if stays { &word } else { "#" });
            before = std::mem::take(&mut word);
        }
        general.push(character);
        if general.len() >= bounds::DEAD_CAUSE_BYTES {
            break;
        }
    }
    let mut end = general.len().min(bounds::DEAD_CAUSE_BYTES);
    while !general.is_char_boundary(end) {
        end -= 1;
    }
    general.truncate(end);
    general.trim_end().to_owned()
}

/// Returns true for a short number behind a word that makes it a part of the cause.
fn is_code(before: &str, word: &str) -> bool {
    let is_short = word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_short && CODE_WORDS.contains(&before.to_ascii_lowercase().as_str())
}

/// Returns the name of a cause.
pub(super) fn fingerprint(kind: &str, general: &str) -> String {
    let mut digest = Sha256::new();
    for part in [kind, general] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ids_are_left_out() {
        for (text, general) in [
            ("order 17 is unknown", "order # is unknown"),
            ("timeout after 30 s", "timeout after # s"),
            ("no user 0195f2a0-9c1e-7d3b-8a55-1f2e3d4c5b6a", "no user #"),
            ("disk /dev/sda1 is full (99.5 %)", "disk /dev/# is full (#.# %)"),
            ("  spaces around\n", "spaces around"),
            ("", ""),
        ] {
            assert_eq!(general_text(text), general);
        }
    }

    #[test]
    fn a_status_stays() {
        assert_eq!(general_text("HTTP 410 from host-7"), "HTTP 410 from #");
        assert_eq!(general_text("exit status 3"), "exit status 3");
        assert_eq!(general_text("status 123456"), "status #");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let general = general_text(&"ä ".repeat(bounds::DEAD_CAUSE_BYTES));
        assert!(general.len() <= bounds::DEAD_CAUSE_BYTES && general.ends_with('ä'), "{general}");
        assert!(general_text(&"ä".repeat(bounds::DEAD_CAUSE_BYTES)).len() <= bounds::DEAD_CAUSE_BYTES);
    }

    #[test]
    fn each_kind_has_its_own_fingerprint() {
        assert_ne!(fingerprint("a", "bc"), fingerprint("ab", "c"));
        assert_eq!(fingerprint("a", "b").len(), 16);
    }
}
