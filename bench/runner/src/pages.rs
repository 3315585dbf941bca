//! The pages whose records are kept: `bench/record/NAME.json` is the record of `docs/NAME.md`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{record, report};

/// Writes all pages.
pub(crate) fn write(bench: &Path) -> Result<()> {
    for (record, page) in kept(bench)? {
        report::write(&record::read_all(&[record])?, &page)?;
    }
    Ok(())
}

/// Checks that each page matches its record.
pub(crate) fn check(bench: &Path) -> Result<()> {
    let mut stale = Vec::new();
    for (record, page) in kept(bench)? {
        for (name, text) in report::files(&record::read_all(&[record])?, &page)? {
            let path = page.with_file_name(name);
            if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                stale.push(path.display().to_string());
            }
        }
    }
    ensure!(
        stale.is_empty(),
        "not what their records give: {}; write them with `bench-runner pages`",
        stale.join(", ")
    );
    Ok(())
}

/// Returns the records that are named after a page, with their pages.
fn kept(bench: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let (records, docs) = (bench.join("record"), bench.join("../docs"));
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(&records).with_context(|| format!("could not read {}", records.display()))? {
        let record = entry?.path();
        let page = record.file_stem().map(|stem| docs.join(stem).with_extension("md"));
        kept.extend(page.filter(|page| page.is_file()).map(|page| (record, page)));
    }
    ensure!(!kept.is_empty(), "no record of a page is kept in {}", records.display());
    kept.sort();
    Ok(kept)
}
