//! `docs/features.md`: which tests show which feature, and which the absence of a fault that others have.
//!
//! A test says what it shows in its doc comment, `/// Shows: T8, Q1`, and which fault it would notice, `/// Beats: lost-events`.
//! What the names mean stands in `docs/features.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::mutants;
use crate::project::Project;
use crate::source::identifiers;
use crate::tidy::Finding;

const CATALOGUE: &str = "docs/features.toml";
const DOCUMENT: &str = "docs/features.md";
const MARKS: [&str; 2] = ["/// Shows:", "/// Beats:"];

/// What `cargo xtask features` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail if the file is not what it should be.
    #[arg(long)]
    check: bool,
    /// Treat features under way (`claimed = false`) as claimed, to see what still lacks a test.
    #[arg(long, requires = "check")]
    strict: bool,
}

/// `docs/features.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    section: Vec<Section>,
    feature: Vec<Feature>,
    #[serde(default)]
    beat: Vec<Beat>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    letter: String,
    title: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    id: String,
    text: String,
    /// Absent: planned. False: under way. True: done, and so a test must name it.
    claimed: Option<bool>,
    /// What of it is planned still.
    later: Option<String>,
}

/// A fault that another system has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beat {
    name: String,
    /// The section it belongs to, by its letter.
    section: String,
    text: String,
    /// Why no test can show it absent yet. Where this is missing, a test must name it.
    later: Option<String>,
}

/// A test that names a feature or a fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    path: String,
    test: String,
}

/// Tests by the id of a feature or the name of a fault.
#[derive(Debug, Default)]
struct Evidence {
    tests: BTreeMap<String, BTreeSet<Shown>>,
    /// The names of the patches that bring a fault back.
    patches: BTreeMap<String, Vec<String>>,
}

/// Writes the document, or checks it.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if !options.check {
        let (catalogue, evidence) = read(project)?;
        std::fs::write(project.path(DOCUMENT), document(&catalogue, &evidence))
            .context("cannot write docs/features.md")?;
        println!("wrote {DOCUMENT}");
        return Ok(());
    }
    let findings = check(project, options.strict)?;
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    Ok(())
}

/// Finds what is stale, unknown, or claimed without a test.
pub(crate) fn check(project: &Project, strict: bool) -> Result<Vec<Finding>> {
    let (catalogue, evidence) = read(project)?;
    let mut findings = problems(&catalogue, &evidence, strict);
    findings.extend(mutants::check(project, &catalogue.names(), &catalogue.beaten())?);
    let written = if project.path(DOCUMENT).is_file() { project.read(DOCUMENT)? } else { String::new() };
    if written != document(&catalogue, &evidence) {
        findings.push(Finding::file(DOCUMENT, "is not fresh; run `cargo xtask features`"));
    }
    Ok(findings)
}

fn read(project: &Project) -> Result<(Catalogue, Evidence)> {
    let catalogue = toml::from_str(&project.read(CATALOGUE)?).with_context(|| format!("{CATALOGUE} cannot be read"))?;
    let mut evidence = Evidence { patches: mutants::by_what_they_break(project)?, ..Evidence::default() };
    for path in project.files_with("rs").filter(|path| path.starts_with("crates/")) {
        collect(path, &project.read(path)?, &mut evidence);
    }
    Ok((catalogue, evidence))
}

/// Adds what one file's tests show.
fn collect(path: &str, text: &str, evidence: &mut Evidence) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(ids) = MARKS.iter().find_map(|mark| line.trim_start().strip_prefix(mark)) else { continue };
        let Some(test) = lines.clone().find_map(function_name) else { continue };
        for id in ids.split(',') {
            let id = id.trim().trim_end_matches('.').to_owned();
            let shown = Shown { path: path.to_owned(), test: test.to_owned() };
            evidence.tests.entry(id).or_default().insert(shown);
        }
    }
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = identifiers(line.trim_start().strip_prefix("//").map_or(line, |_| "")).map(|(_, word)| word);
    words.find(|word| *word == "fn")?;
    words.next()
}

impl Catalogue {
    /// What a test may name.
    fn names(&self) -> BTreeSet<String> {
        let features = self.feature.iter().map(|feature| feature.id.clone());
        features.chain(self.beat.iter().map(|beat| beat.name.clone())).collect()
    }

    /// The faults whose absence must be shown.
    fn beaten(&self) -> BTreeSet<String> {
        self.beat.iter().filter(|beat| beat.later.is_none()).map(|beat| beat.name.clone()).collect()
    }
}

fn problems(catalogue: &Catalogue, evidence: &Evidence, strict: bool) -> Vec<Finding> {
    let known = catalogue.names();
    let unknown = evidence.tests.iter().filter(|(id, _)| !known.contains(id.as_str())).flat_map(|(id, tests)| {
        let message = move |it: &Shown| format!("`{}` names `{id}`, which {CATALOGUE} does not have", it.test);
        tests.iter().map(move |it| Finding::file(&it.path, message(it)))
    });
    let is_claimed = |feature: &&Feature| feature.claimed == Some(true) || (strict && feature.claimed.is_some());
    let bare =
        catalogue.feature.iter().filter(is_claimed).filter(|feature| !evidence.tests.contains_key(&feature.id)).map(
            |feature| {
                Finding::file(CATALOGUE, format!("{} is claimed and no test says `Shows: {}`", feature.id, feature.id))
            },
        );
    let unbeaten = catalogue.beaten().into_iter().filter(|name| !evidence.tests.contains_key(name));
    let unbeaten = unbeaten.map(|name| Finding::file(CATALOGUE, format!("no test says `Beats: {name}`")));
    unknown.chain(bare).chain(unbeaten).collect()
}

fn document(catalogue: &Catalogue, evidence: &Evidence) -> String {
    let mut text = String::from(
        "# Features and the tests that show them\n\n\
         <!-- Written by `cargo xtask features` from docs/features.toml and the tests; do not edit. -->\n\n\
         *Done*: a test below shows it, and CI fails without one. *Under way*: being built. *Planned*: not there yet.\n\n\
         Below each part stand faults that were seen in other systems, with the tests that would fail if Onward had them. Each of these\n\
         is brought back by a patch in [xtask/mutants](../xtask/mutants), and `cargo xtask mutants` shows that the test notices.\n",
    );
    for section in &catalogue.section {
        let _ = write!(text, "\n## {} · {}\n\n", section.letter, section.title);
        text.push_str("| id | what | state | tests |\n|---|---|---|---|\n");
        for feature in catalogue.feature.iter().filter(|feature| feature.id.starts_with(&section.letter)) {
            text.push_str(&row(feature, evidence.tests.get(&feature.id)));
        }
        text.push_str(&beats(catalogue, section, evidence));
    }
    text
}

/// The faults of others in a section.
fn beats(catalogue: &Catalogue, section: &Section, evidence: &Evidence) -> String {
    let beats: Vec<&Beat> = catalogue.beat.iter().filter(|beat| beat.section == section.letter).collect();
    if beats.is_empty() {
        return String::new();
    }
    let mut text =
        String::from("\n| fault of others | what it is | state | tests | brought back by |\n|---|---|---|---|---|\n");
    for Beat { name, text: what, later, .. } in beats {
        let state = later.as_ref().map_or("absent".to_owned(), |later| format!("planned: {later}"));
        let tests = links(evidence.tests.get(name));
        let link = |patch: &String| format!("[{patch}](../xtask/mutants/{patch}.patch)");
        let patches = evidence.patches.get(name).into_iter().flatten().map(link).collect::<Vec<_>>().join("<br>");
        let _ = writeln!(text, "| {name} | {what} | {state} | {tests} | {patches} |");
    }
    text
}

fn row(feature: &Feature, tests: Option<&BTreeSet<Shown>>) -> String {
    let state = match feature.claimed {
        Some(true) => "done",
        Some(false) => "under way",
        None => "planned",
    };
    let tests = links(tests);
    let later = feature.later.as_ref().map(|later| format!("; *planned:* {later}")).unwrap_or_default();
    format!("| {} | {}{later} | {state} | {tests} |\n", feature.id, feature.text)
}

fn links(tests: Option<&BTreeSet<Shown>>) -> String {
    let link = |shown: &Shown| format!("[`{}`](../{})", shown.test, shown.path);
    tests.into_iter().flatten().map(link).collect::<Vec<_>>().join("<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str =
        "/// Nothing is lost.\n///\n/// Shows: T8, Q1.\n#[tokio::test]\nasync fn a_dead_letter_can_be_retried() {\n";

    fn catalogue(claimed: &str) -> Catalogue {
        let text = format!(
            "[[section]]\nletter = \"T\"\ntitle = \"Tasks\"\n[[feature]]\nid = \"T8\"\ntext = \"Dead letters\"\n{claimed}\n\
             [[feature]]\nid = \"Q1\"\ntext = \"Queues\"\n"
        );
        toml::from_str(&text).unwrap()
    }

    fn evidence(text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        collect("crates/x/tests/it/a.rs", text, &mut evidence);
        evidence
    }

    #[test]
    fn a_test_names_what_it_shows() {
        let evidence = evidence(TEST);
        assert_eq!(evidence.tests.keys().collect::<Vec<_>>(), ["Q1", "T8"]);
        assert!(evidence.tests["T8"].iter().all(|shown| shown.test == "a_dead_letter_can_be_retried"));
    }

    #[test]
    fn a_claimed_feature_without_a_test_is_found() {
        assert_eq!(problems(&catalogue("claimed = true"), &Evidence::default(), false).len(), 1);
        assert_eq!(problems(&catalogue("claimed = true"), &evidence(TEST), false), []);
    }

    #[test]
    fn a_feature_under_way_needs_a_test_only_when_strict() {
        let catalogue = catalogue("claimed = false");
        assert_eq!(problems(&catalogue, &Evidence::default(), false), []);
        assert_eq!(problems(&catalogue, &Evidence::default(), true).len(), 1);
    }

    fn with_beat(later: &str) -> Catalogue {
        catalogue(&format!(
            "claimed = true\n[[beat]]\nname = \"lost-letters\"\nsection = \"T\"\ntext = \"letters are lost\"\n{later}"
        ))
    }

    #[test]
    fn a_fault_of_others_without_a_test_is_found() {
        let test = TEST.replace("Shows: T8, Q1.", "Shows: T8\n/// Beats: lost-letters");
        assert_eq!(problems(&with_beat(""), &evidence(&TEST.replace(", Q1", "")), false).len(), 1);
        assert_eq!(problems(&with_beat(""), &evidence(&test), false), []);
        assert_eq!(problems(&with_beat("later = \"letters\""), &evidence(&TEST.replace(", Q1", "")), false), []);
    }

    #[test]
    fn the_document_shows_the_faults_of_others() {
        let mut evidence = evidence(&TEST.replace("Shows: T8, Q1.", "Beats: lost-letters"));
        evidence.patches.insert("lost-letters".to_owned(), vec!["no-retry".to_owned()]);
        let text = document(&with_beat(""), &evidence);
        assert!(text.contains("| lost-letters | letters are lost | absent | [`a_dead_letter"), "{text}");
        assert!(text.contains(" | [no-retry](../xtask/mutants/no-retry.patch) |"), "{text}");
    }

    #[test]
    fn an_unknown_id_is_found() {
        assert_eq!(problems(&catalogue(""), &evidence(&TEST.replace("T8", "T99")), false).len(), 1);
    }

    #[test]
    fn the_document_says_what_is_left_for_later() {
        let text = document(&catalogue("claimed = true\nlater = \"purge\""), &Evidence::default());
        assert!(text.contains("| Dead letters; *planned:* purge | done |"), "{text}");
    }

    #[test]
    fn the_document_links_each_test() {
        let text = document(&catalogue("claimed = true"), &evidence(TEST));
        let row = "| T8 | Dead letters | done | [`a_dead_letter_can_be_retried`](../crates/x/tests/it/a.rs) |";
        assert!(text.contains(row), "{text}");
    }
}
