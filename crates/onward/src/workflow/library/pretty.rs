//! JSON with line breaks.

/// The number of spaces of one level.
const INDENT: usize = 2;

/// Writes JSON without white space on several lines. Values are copied unchanged, so that two forms
/// differ only where their contents differ.
pub(super) fn pretty(json: &str) -> String {
    let mut writer = Writer { text: String::with_capacity(json.len() * 2), level: 0 };
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => writer.quoted(&mut characters),
            '{' | '[' => {
                writer.text.push(character);
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => writer.text.push(end),
                    None => writer.open(),
                }
            }
            '}' | ']' => writer.close(character),
            ',' => {
                writer.text.push(',');
                writer.line();
            }
            ':' => writer.text.push_str(": "),
            other => writer.text.push(other),
        }
    }
    writer.text.push('\n');
    writer.text
}

struct Writer {
    text: String,
    level: usize,
}

impl Writer {
    fn open(&mut self) {
        self.level += 1;
        self.line();
    }

    fn close(&mut self, end: char) {
        self.level = self.level.saturating_sub(1);
        self.line();
        self.text.push(end);
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.level * INDENT));
    }

    /// Copies a text to its closing quotation mark.
    fn quoted(&mut self, characters: &mut impl Iterator<Item = char>) {
        self.text.push('"');
        let mut is_escaped = false;
        for character in characters {
            self.text.push(character);
            match character {
                '"' if !is_escaped => return,
                '\\' => is_escaped = !is_escaped,
                _ => is_escaped = false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_of_a_map_and_a_list_has_its_line() {
        let text = pretty(r#"{"a":[1,"x,{\":}"],"b":{},"c":[]}"#);
        let expected = "{\n  \"a\": [\n    1,\n    \"x,{\\\":}\"\n  ],\n  \"b\": {},\n  \"c\": []\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn numbers_stay_as_they_are() {
        assert_eq!(pretty("[12345678901234567890,1.10]"), "[\n  12345678901234567890,\n  1.10\n]\n");
    }
}
