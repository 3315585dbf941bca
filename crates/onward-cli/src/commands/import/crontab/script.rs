//! The payload of a task: a script that does what cron does with a line.

use std::fmt::Write as _;

use super::file::Entry;

/// The shell of cron.
const SHELL: &str = "/bin/sh";

/// Returns a script for `sh` on its standard input. It sets the variables, goes to the home
/// directory and runs the command with the shell that `SHELL` names. The standard input of the
/// command is not that of the script: it is empty, or what stands behind `%`.
pub(super) fn script(entry: &Entry) -> String {
    let mut script = String::new();
    for (name, value) in &entry.variables {
        // Writing to a text cannot fail.
        let _ = writeln!(script, "export {name}={}", quoted(value));
    }
    script.push_str("cd \"${HOME:-/}\" || exit 1\n");
    let shell = entry.variables.iter().find(|(name, _)| name == "SHELL").map_or(SHELL, |(_, shell)| shell);
    let (shell, command) = (quoted(shell), quoted(&entry.command));
    let _ = match &entry.stdin {
        None => writeln!(script, "exec {shell} -c {command} </dev/null"),
        Some(stdin) => {
            let end = end_of(stdin);
            writeln!(script, "exec {shell} -c {command} <<'{end}'\n{stdin}{end}")
        }
    };
    script
}

/// Returns a line that ends a text because it is no line of it.
fn end_of(text: &str) -> String {
    let mut end = "END_OF_INPUT".to_owned();
    while text.lines().any(|line| line == end) {
        end.push('_');
    }
    end
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::file::read;
    use super::*;

    fn of(text: &str) -> String {
        script(&read(text, false).entries[0])
    }

    #[test]
    fn a_command_runs_with_its_variables_and_without_input() {
        let expected = "export A='it'\\''s'\ncd \"${HOME:-/}\" || exit 1\nexec '/bin/sh' -c 'echo $A' </dev/null\n";
        assert_eq!(of("A=it's\n* * * * * echo $A"), expected);
    }

    #[test]
    fn the_shell_of_the_crontab_runs_the_command() {
        assert!(of("SHELL=/bin/bash\n* * * * * x").contains("exec '/bin/bash' -c 'x' </dev/null\n"));
    }

    #[test]
    fn input_ends_with_a_line_that_is_not_part_of_it() {
        let script = of("* * * * * cat%a%END_OF_INPUT");
        assert!(script.ends_with("-c 'cat' <<'END_OF_INPUT_'\na\nEND_OF_INPUT\nEND_OF_INPUT_\n"), "{script}");
    }
}
