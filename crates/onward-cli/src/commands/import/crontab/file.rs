//! The lines of a crontab, with the variables that stand before each.

use super::when::{self, next_word};

/// A line that becomes a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of the line, from 1.
    pub(super) number: usize,
    pub(super) expression: String,
    /// The time zone that `CRON_TZ` named before the line.
    pub(super) zone: Option<String>,
    /// The user, in a crontab of the system.
    pub(super) user: Option<String>,
    pub(super) command: String,
    /// The lines that the command gets on its standard input, from `%` on.
    pub(super) stdin: Option<String>,
    /// The variables for the command, in order.
    pub(super) variables: Vec<(String, String)>,
}

/// A line that is not carried over, or not as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The number of the line, from 1.
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) reason: String,
    /// True if nothing of the line is carried over that a schedule would need.
    pub(super) is_entry: bool,
}

/// The content of a crontab.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Crontab {
    pub(super) entries: Vec<Entry>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Reads a crontab. `has_users` is true for /etc/crontab and the files of /etc/cron.d, whose lines
/// name a user before the command.
pub(super) fn read(text: &str, has_users: bool) -> Crontab {
    let mut crontab = Crontab::default();
    let (mut variables, mut zone): (Vec<(String, String)>, Option<String>) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let left_out = |reason: String, is_entry| LeftOut { number, text: line.to_owned(), reason, is_entry };
        if let Some((name, value)) = variable(line) {
            match name.as_str() {
                "CRON_TZ" => zone = Some(value),
                "MAILTO" | "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => {
                    if !value.is_empty() {
                        crontab.left_out.push(left_out(no_mail(&name), false));
                    }
                }
                "RANDOM_DELAY" => {
                    let remedy = "a schedule has a jitter: `onward schedule set --jitter`".to_owned();
                    crontab.left_out.push(left_out(remedy, false));
                }
                _ => set(&mut variables, name, value),
            }
            continue;
        }
        match entry(line, has_users) {
            Ok((expression, user, command)) => {
                let (command, stdin) = split_percent(command);
                let (zone, variables) = (zone.clone(), variables.clone());
                crontab.entries.push(Entry { number, expression, zone, user, command, stdin, variables });
            }
            Err(reason) => crontab.left_out.push(left_out(reason, true)),
        }
    }
    crontab
}

fn no_mail(name: &str) -> String {
    format!("{name} has no effect: output is kept with each task (`onward task show`) and not mailed")
}

fn set(variables: &mut Vec<(String, String)>, name: String, value: String) {
    variables.retain(|(known, _)| *known != name);
    variables.push((name, value));
}

/// Reads a line `NAME = VALUE`. Quotes around name and value are taken off, and nothing is replaced
/// in the value.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = unquoted(name.trim());
    let is_start = |character: char| character.is_ascii_alphabetic() || character == '_';
    let is_name = name.starts_with(is_start) && name.chars().all(|next| is_start(next) || next.is_ascii_digit());
    is_name.then(|| (name.to_owned(), unquoted(value.trim()).to_owned()))
}

fn unquoted(text: &str) -> &str {
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

/// Returns the cron expression, the user and the command of a line.
fn entry(line: &str, has_users: bool) -> Result<(String, Option<String>, &str), String> {
    let (expression, mut command) = when::read(line)?;
    let mut user = None;
    if has_users {
        let (name, rest) = next_word(command);
        user = Some(name.to_owned());
        command = rest;
    }
    if command.is_empty() {
        let what = if has_users { "user and a command" } else { "command" };
        return Err(format!("the line has no {what} behind its time"));
    }
    Ok((expression, user, command))
}

/// Splits a command at its first `%`. A `%` with a backslash is a `%`, and any other is a line
/// break.
fn split_percent(text: &str) -> (String, Option<String>) {
    let (mut command, mut stdin) = (String::new(), None::<String>);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let part = match (character, &mut stdin) {
            ('%', None) => {
                stdin = Some(String::new());
                continue;
            }
            (_, None) => &mut command,
            (_, Some(lines)) => lines,
        };
        match character {
            '\\' if characters.peek() == Some(&'%') => part.extend(characters.next()),
            '%' => part.push('\n'),
            other => part.push(other),
        }
    }
    let stdin = stdin.map(|lines| if lines.ends_with('\n') { lines } else { lines + "\n" });
    (command, stdin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Entry {
        let mut crontab = read(text, false);
        assert_eq!((crontab.entries.len(), &crontab.left_out), (1, &Vec::new()), "{text}");
        crontab.entries.remove(0)
    }

    #[test]
    fn variables_count_for_the_lines_behind_them() {
        let text = "PATH=/bin\n0 1 * * * a\n  \"NAME\" = ' a b '\nPATH=\"/opt/bin\"\n0 2 * * * b\n";
        let entries = read(text, false).entries;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(entries[0].variables, [pair("PATH", "/bin")]);
        assert_eq!(entries[1].variables, [pair("NAME", " a b "), pair("PATH", "/opt/bin")]);
    }

    #[test]
    fn cron_tz_is_the_zone_of_the_lines_behind_it() {
        let text = "0 1 * * * a\nCRON_TZ=Europe/Berlin\n0 2 * * * b\n";
        let zones: Vec<_> = read(text, false).entries.into_iter().map(|entry| entry.zone).collect();
        assert_eq!(zones, [None, Some("Europe/Berlin".to_owned())]);
    }

    #[test]
    fn what_is_behind_a_percent_sign_is_standard_input() {
        let entry = one("0 1 * * * mail -s 100\\% ops%first%second");
        assert_eq!((entry.command.as_str(), entry.stdin.as_deref()), ("mail -s 100% ops", Some("first\nsecond\n")));
    }

    #[test]
    fn a_crontab_of_the_system_names_a_user() {
        let entry = read("17 *\t* * *\troot\tcd / && run-parts /etc/cron.hourly\n", true).entries.remove(0);
        assert_eq!(
            (entry.user.as_deref(), entry.command.as_str()),
            (Some("root"), "cd / && run-parts /etc/cron.hourly")
        );
        assert!(read("0 1 * * * root", true).left_out[0].reason.contains("no user and a command"));
    }

    #[test]
    fn lines_that_are_not_carried_over_have_their_reason() {
        let left_out =
            read("# a comment\n\nMAILTO=ops\nMAILTO=\"\"\n@reboot a\n99 * * * * b\n* * * * *\n", false).left_out;
        let lines: Vec<(usize, bool)> = left_out.iter().map(|line| (line.number, line.is_entry)).collect();
        assert_eq!(lines, [(3, false), (5, true), (6, true), (7, true)]);
        assert!(left_out[0].reason.contains("not mailed"), "{}", left_out[0].reason);
    }

    #[test]
    fn an_equals_sign_in_a_command_makes_no_variable() {
        assert_eq!(one("0 1 * * * A=1 run").command, "A=1 run");
    }
}
