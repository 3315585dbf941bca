//! The results of the mutants, as a table and as JSON.

use std::fmt;

use serde::Serialize;

/// The result of one mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The test failed, as it must.
    Caught,
    /// The test passed, so it shows less than it claims.
    Survived,
    /// The patch no longer applies to the sources.
    DoesNotApply,
    /// The mutant does not compile.
    DoesNotBuild,
    /// The test also fails without the mutant, or does not exist.
    FailsAnyway,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Caught => "caught",
            Self::Survived => "SURVIVED",
            Self::DoesNotApply => "DOES NOT APPLY",
            Self::DoesNotBuild => "DOES NOT BUILD",
            Self::FailsAnyway => "FAILS ANYWAY",
        })
    }
}

/// One row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) breaks: String,
    pub(crate) package: String,
    pub(crate) test: String,
    pub(crate) verdict: Verdict,
    pub(crate) seconds: f64,
    /// The seed with which the simulation found it, and the number of seeds before; `None` for
    /// other tests.
    pub(crate) seed: Option<String>,
}

impl Row {
    pub(super) fn is_caught(&self) -> bool {
        self.verdict == Verdict::Caught
    }
}

/// Returns the rows as a table.
pub(crate) fn table(rows: &[Row]) -> String {
    let width = |cell: fn(&Row) -> &str| rows.iter().map(|row| cell(row).len()).max().unwrap_or(0).max(7);
    let (names, breaks) = (width(|row| &row.name), width(|row| &row.breaks));
    let line = |row: &Row| {
        let Row { name, breaks: broken, package, test, verdict, seconds, seed } = row;
        let seed = seed.as_ref().map(|seed| format!(", seed {seed}")).unwrap_or_default();
        format!("{name:names$}  {broken:breaks$}  {verdict:14}  {seconds:7.1}  {package} {test}{seed}")
    };
    let head = format!("{:names$}  {:breaks$}  {:14}  {:>7}  test", "variant", "breaks", "verdict", "seconds");
    std::iter::once(head).chain(rows.iter().map(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict) -> Row {
        Row {
            name: "slot".into(),
            breaks: "leaked-slot".into(),
            package: "onward".into(),
            test: "ends::a_panic".into(),
            verdict,
            seconds: 1.25,
            seed: None,
        }
    }

    #[test]
    fn what_was_not_caught_stands_out() {
        let text = table(&[row(Verdict::Caught), row(Verdict::Survived)]);
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows[0], "slot     leaked-slot  caught              1.2  onward ends::a_panic");
        assert!(rows[1].contains("SURVIVED"), "{text}");
    }

    #[test]
    fn the_seed_that_found_a_mutant_follows_its_test() {
        let found = Row { seed: Some("7, after 2 seeds".into()), ..row(Verdict::Caught) };
        assert!(table(&[found]).ends_with("onward ends::a_panic, seed 7, after 2 seeds"));
    }

    #[test]
    fn programs_read_the_verdict_as_one_word() {
        let json = serde_json::to_value(row(Verdict::DoesNotApply)).unwrap();
        assert_eq!(json["verdict"], "does-not-apply");
    }
}
