//! One field of the time of a crontab line.

use std::fmt::Write as _;

/// The names and bounds of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    first: u32,
    last: u32,
    /// The names of values, from the first on.
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The five fields in their order. Sunday is 0 and 7.
pub(super) const FIELDS: [Field; 5] = [
    Field { name: "minute", first: 0, last: 59, names: &[] },
    Field { name: "hour", first: 0, last: 23, names: &[] },
    Field { name: "day of month", first: 1, last: 31, names: &[] },
    Field { name: "month", first: 1, last: 12, names: MONTHS },
    Field { name: "day of week", first: 0, last: 7, names: DAYS },
];

/// A field that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    /// The field in numbers.
    pub(super) text: String,
    /// True if it begins with `*`. cron combines the days of two fields by that.
    pub(super) has_star: bool,
    /// True if it is `*` alone.
    pub(super) is_any: bool,
}

impl Field {
    /// Reads a field: a list of `*`, numbers, names and ranges, with steps behind `*` and ranges.
    ///
    /// # Errors
    /// Returns an error if a part is none of these. The message names the field and the part.
    pub(super) fn read(self, text: &str) -> Result<Read, String> {
        let mut numbers = String::new();
        for part in text.split(',') {
            let separator = if numbers.is_empty() { "" } else { "," };
            let part = self.part(part)?;
            // Writing to a text cannot fail.
            let _ = write!(numbers, "{separator}{part}");
        }
        Ok(Read { text: numbers, has_star: text.starts_with('*'), is_any: text == "*" })
    }

    fn part(self, part: &str) -> Result<String, String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let range = match range.split_once('-') {
            _ if range == "*" => range.to_owned(),
            Some((first, last)) => self.range(part, first, last)?,
            None if step.is_some() => return Err(self.wrong(part, "a step stands behind `*` or a range")),
            None => self.value(range)?.to_string(),
        };
        Ok(step.map_or_else(|| range.clone(), |step| format!("{range}/{step}")))
    }

    fn range(self, part: &str, first: &str, last: &str) -> Result<String, String> {
        let (first, last) = (self.value(first)?, self.value(last)?);
        if first > last {
            return Err(self.wrong(part, "a range begins with the lower value"));
        }
        Ok(format!("{first}-{last}"))
    }

    fn step(self, text: &str) -> Result<u32, String> {
        let step = text.parse().ok().filter(|step| (1..=self.last).contains(step));
        step.ok_or_else(|| self.wrong(text, &format!("a step is 1 to {}", self.last)))
    }

    fn value(self, text: &str) -> Result<u32, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten();
        let named = || self.names.iter().zip(self.first..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let value = number.or_else(|| named().map(|(_, value)| value));
        value.filter(|value| (self.first..=self.last).contains(value)).ok_or_else(|| {
            let names = if self.names.is_empty() { "" } else { ", or the first three letters of a name" };
            self.wrong(text, &format!("a value is {} to {}{names}", self.first, self.last))
        })
    }

    fn wrong(self, part: &str, remedy: &str) -> String {
        format!("`{part}` is no {}; {remedy}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(field: usize, text: &str) -> Result<String, String> {
        FIELDS[field].read(text).map(|read| read.text)
    }

    #[test]
    fn lists_ranges_steps_and_names_become_numbers() {
        assert_eq!(read(0, "0,5-10/2,*/15").unwrap(), "0,5-10/2,*/15");
        assert_eq!(read(3, "JAN,mar-May").unwrap(), "1,3-5");
        assert_eq!(read(4, "sun,1-5,7").unwrap(), "0,1-5,7");
    }

    #[test]
    fn a_part_that_is_no_value_is_refused_with_the_field() {
        for (field, text, error) in [
            (0, "60", "`60` is no minute; a value is 0 to 59"),
            (1, "5/2", "a step stands behind `*` or a range"),
            (2, "0", "a value is 1 to 31"),
            (4, "fri-mon", "a range begins with the lower value"),
            (0, "*/0", "a step is 1 to 59"),
            (0, "0~30", "`0~30` is no minute"),
            (0, "1,,2", "`` is no minute"),
            (4, "L", "the first three letters"),
        ] {
            let refused = read(field, text).unwrap_err();
            assert!(refused.contains(error), "{text}: {refused}");
        }
    }
}
