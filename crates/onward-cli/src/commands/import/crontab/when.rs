//! The time of a crontab line, as a cron expression.

use super::field::FIELDS;

/// The words that stand for five fields.
const WORDS: [(&str, &str); 8] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@every_minute", "* * * * *"),
];

/// Reads the time at the beginning of a line. Returns the cron expression and the rest of the line.
///
/// # Errors
/// Returns an error if the time cannot be read, or a schedule cannot have it. The message says why.
pub(super) fn read(line: &str) -> Result<(String, &str), String> {
    // A minus in front asks cron not to log the line.
    let line = line.strip_prefix('-').unwrap_or(line);
    if line.starts_with('@') {
        return word(line);
    }
    let (mut rest, mut fields) = (line, Vec::with_capacity(FIELDS.len()));
    for field in FIELDS {
        let (text, behind) = next_word(rest);
        if text.is_empty() {
            return Err("the line has fewer than five fields and a command".to_owned());
        }
        fields.push(field.read(text)?);
        rest = behind;
    }
    if let [_, _, day, _, weekday] = &fields[..] {
        let is_both = !day.is_any && !weekday.is_any && (day.has_star || weekday.has_star);
        if is_both {
            return Err(format!(
                "cron runs it on days that are both `{}` and `{}`, and a schedule on days that are either; give one of them as numbers",
                day.text, weekday.text
            ));
        }
    }
    let expression: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
    Ok((expression.join(" "), rest))
}

fn word(line: &str) -> Result<(String, &str), String> {
    let (word, rest) = next_word(line);
    if word.eq_ignore_ascii_case("@reboot") {
        return Err("@reboot is no time; start the command with the service manager of the machine".to_owned());
    }
    let known = WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
    known.map(|(_, expression)| ((*expression).to_owned(), rest)).ok_or_else(|| {
        let known: Vec<&str> = WORDS.iter().map(|(known, _)| *known).collect();
        format!("`{word}` is no time; there are {}", known.join(", "))
    })
}

/// Returns the first word of a text, and the rest without the space before it.
pub(super) fn next_word(text: &str) -> (&str, &str) {
    let is_space = |character: char| character == ' ' || character == '\t';
    let text = text.trim_start_matches(is_space);
    let (word, rest) = text.split_at(text.find(is_space).unwrap_or(text.len()));
    (word, rest.trim_start_matches(is_space))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_fields() {
        assert_eq!(read("@Daily  backup x"), Ok(("0 0 * * *".to_owned(), "backup x")));
        assert!(read("@reboot x").unwrap_err().contains("service manager"));
        assert!(read("@often x").unwrap_err().contains("@hourly"));
    }

    #[test]
    fn fields_are_separated_by_spaces_and_tabs() {
        assert_eq!(read("0\t3  * * mon-fri\t backup  --all"), Ok(("0 3 * * 1-5".to_owned(), "backup  --all")));
        assert_eq!(read("-0 3 * * * x"), Ok(("0 3 * * *".to_owned(), "x")));
    }

    #[test]
    fn days_that_cron_combines_in_another_way_are_refused() {
        assert!(read("0 0 */2 * 1 x").unwrap_err().contains("both"));
        assert!(read("0 0 1 * */2 x").unwrap_err().contains("both"));
        assert!(read("0 0 1,15 * 1 x").is_ok());
    }
}
