//! Checks that functions and files are short.

use super::Finding;
use super::exceptions::{Exception, Exceptions, Measured, Verdict, stale, verdict_of};
use crate::source::SourceFile;

/// The most lines of a function, from its signature to its closing brace.
const FUNCTION_LINES: usize = 70;

/// The most lines of a file, not counting its test modules.
const FILE_LINES: usize = 1000;

/// Finds functions and files that are too long, and exceptions that are no longer needed.
pub(crate) fn check(sources: &[SourceFile], exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    let functions: Vec<_> = sources.iter().map(|source| (source, source.functions())).collect();
    let long_functions: Vec<_> = functions
        .iter()
        .flat_map(|(source, functions)| functions.iter().map(move |function| (source, function)))
        .map(|(source, it)| Measured { file: &source.path, function: &it.name, amount: it.lines.len() })
        .filter(|measured| measured.amount > FUNCTION_LINES)
        .collect();
    ratchet(&long_functions, &exceptions.long_function, FUNCTION_LINES, &mut findings);

    let long_files: Vec<_> = sources
        .iter()
        .map(|source| Measured { file: &source.path, function: "", amount: lines(source) })
        .filter(|measured| measured.amount > FILE_LINES)
        .collect();
    ratchet(&long_files, &exceptions.long_file, FILE_LINES, &mut findings);
    findings
}

/// Returns the number of lines of a file outside test modules. A file of tests counts whole.
fn lines(source: &SourceFile) -> usize {
    source.test_lines().iter().filter(|is_test| !**is_test).count()
}

fn ratchet(long: &[Measured<'_>], exceptions: &[Exception], limit: usize, findings: &mut Vec<Finding>) {
    for measured in long {
        let what = if measured.function.is_empty() { "the file".into() } else { format!("`{}`", measured.function) };
        let amount = measured.amount;
        let message = match verdict_of(measured, exceptions) {
            Verdict::Agreed => continue,
            Verdict::NotExcepted => {
                format!("{what} has {amount} lines and the limit is {limit}; split it by what its parts do")
            }
            Verdict::Exceeded => {
                format!("{what} has grown to {amount} lines, beyond its exception in xtask/tidy.toml; shorten it")
            }
            Verdict::Shrunk => {
                format!("{what} has shrunk to {amount} lines; lower its limit in xtask/tidy.toml to that")
            }
        };
        findings.push(Finding::file(measured.file, message));
    }
    for exception in stale(exceptions, long) {
        let message =
            format!("`{}{}` needs no exception any more; remove it", exception.file, shown(&exception.function));
        findings.push(Finding::file("xtask/tidy.toml", message));
    }
}

fn shown(function: &str) -> String {
    if function.is_empty() { String::new() } else { format!("::{function}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> SourceFile {
        SourceFile::new("a.rs", format!("fn long() {{{}}}\n", "\n".repeat(lines - 1)))
    }

    fn exception(limit: usize) -> Exceptions {
        Exceptions::parse(&format!(
            "[[long_function]]\nfile = \"a.rs\"\nfunction = \"long\"\nlimit = {limit}\nreason = \"a table\"\n"
        ))
        .unwrap()
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_beyond_it_does_not() {
        assert_eq!(check(&[function_of(70)], &Exceptions::default()), []);
        assert_eq!(check(&[function_of(71)], &Exceptions::default()).len(), 1);
    }

    #[test]
    fn an_exception_lets_a_function_be_as_long_as_it_says() {
        assert_eq!(check(&[function_of(80)], &exception(80)), []);
    }

    #[test]
    fn an_exception_must_follow_a_function_that_shrinks() {
        assert!(check(&[function_of(75)], &exception(80))[0].to_string().contains("lower its limit"));
        assert!(check(&[function_of(20)], &exception(80))[0].to_string().contains("remove it"));
    }

    #[test]
    fn a_long_file_fails_unless_the_length_is_in_its_tests() {
        let filler = "const A: u8 = 1;\n".repeat(1001);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{filler}}}\n");
        assert_eq!(check(&[SourceFile::new("a.rs", filler)], &Exceptions::default()).len(), 1);
        assert_eq!(check(&[SourceFile::new("a.rs", tests)], &Exceptions::default()), []);
    }
}
