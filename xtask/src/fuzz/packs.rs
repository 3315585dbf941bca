//! The inputs of the fuzz targets, kept in one file per target.
//!
//! A pack is text: one input a line in hexadecimal digits, sorted, without duplicates. So a diff
//! shows which inputs were added and removed, and two changes merge line by line. A fuzzer needs
//! one file per input; `unpack` writes these files and `pack` reads them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::command::FOLDERS;
use crate::project::Project;

/// The directory of the packs in such a folder.
const PACKS: &str = "packs";

/// The directory in which cargo-fuzz looks for a target's inputs; git ignores it.
const CORPUS: &str = "corpus";

/// The extension of a pack.
const EXTENSION: &str = "hex";

/// The inputs of one target.
type Inputs = BTreeSet<Vec<u8>>;

/// The direction of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Packs become files.
    Unpack,
    /// Files become packs.
    Pack,
}

/// Unpacks or packs the inputs of the targets, or of all that have some.
pub(super) fn convert(project: &Project, direction: Direction, targets: &[String]) -> Result<()> {
    let from = match direction {
        Direction::Unpack => PACKS,
        Direction::Pack => CORPUS,
    };
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        for target in in_directory(&project.path(folder).join(from))? {
            if targets.is_empty() || targets.contains(&target) {
                carry_out(direction, project, folder, &target)?;
                found.insert(target);
            }
        }
    }
    let missing: Vec<_> = targets.iter().filter(|target| !found.contains(*target)).cloned().collect();
    ensure!(missing.is_empty(), "no folder of fuzz targets has {}; see {}", missing.join(", "), FOLDERS.join(" and "));
    ensure!(!found.is_empty(), "no inputs are unpacked; `cargo xtask fuzz unpack` unpacks them");
    Ok(())
}

/// Unpacks or packs the inputs of a target.
fn carry_out(direction: Direction, project: &Project, folder: &str, target: &str) -> Result<()> {
    let (packs, corpus) = (project.path(folder).join(PACKS), project.path(folder).join(CORPUS));
    let (file, inputs) = (pack_file(&packs, target), corpus.join(target));
    let (count, place) = match direction {
        Direction::Unpack => (unpack(&file, &inputs)?, format!("{CORPUS}/{target}")),
        Direction::Pack => (pack(&inputs, &file)?, format!("{PACKS}/{target}.{EXTENSION}")),
    };
    println!("{target}: {count} inputs are in {folder}/{place}");
    Ok(())
}

/// Returns whether there is a pack of a target.
pub(super) fn has_pack(project: &Project, folder: &str, target: &str) -> bool {
    pack_file(&project.path(folder).join(PACKS), target).exists()
}

fn pack_file(packs: &Path, target: &str) -> PathBuf {
    packs.join(target).with_extension(EXTENSION)
}

/// Returns the targets that have an entry in a directory: none if it does not exist.
fn in_directory(directory: &Path) -> Result<BTreeSet<String>> {
    if !directory.exists() {
        return Ok(BTreeSet::new());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let name = |entry: fs::DirEntry| Some(entry.path().file_stem()?.to_string_lossy().into_owned());
    Ok(entries.flatten().filter_map(name).collect())
}

/// Writes each input of a pack to a file. Keeps other files in the directory, which a fuzzer has
/// found.
fn unpack(pack: &Path, directory: &Path) -> Result<usize> {
    let text = fs::read_to_string(pack).with_context(|| format!("cannot read {}", pack.display()))?;
    let inputs = decode(&text).with_context(|| format!("{} is no pack", pack.display()))?;
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for (number, input) in inputs.iter().enumerate() {
        let file = directory.join(format!("packed-{number:04}"));
        fs::write(&file, input).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(inputs.len())
}

/// Writes a pack of the files in a directory.
fn pack(directory: &Path, pack: &Path) -> Result<usize> {
    let files = fs::read_dir(directory)
        .with_context(|| format!("cannot read {}; `cargo xtask fuzz unpack` makes it", directory.display()))?;
    let mut inputs = Inputs::new();
    for file in files {
        let path = file?.path();
        inputs.insert(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    // Every fuzzer tries the empty input anyway, and in a pack it would be an empty line.
    inputs.remove(&Vec::new());
    ensure!(!inputs.is_empty(), "{} holds no input, and an empty pack would test nothing", directory.display());
    fs::write(pack, encode(&inputs)).with_context(|| format!("cannot write {}", pack.display()))?;
    Ok(inputs.len())
}

fn encode(inputs: &Inputs) -> String {
    let mut text = String::new();
    for input in inputs {
        for byte in input {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

fn decode(text: &str) -> Result<Inputs> {
    let numbered = text.lines().enumerate();
    let inputs: Inputs = numbered
        .map(|(number, line)| bytes(line).with_context(|| format!("line {} is not hexadecimal", number + 1)))
        .collect::<Result<_>>()?;
    if inputs.is_empty() {
        bail!("it holds no input");
    }
    Ok(inputs)
}

/// Returns the bytes of a line of hexadecimal digits. Returns `None` if the line has another
/// character or an odd number of digits.
fn bytes(line: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, rest) = line.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_has_a_sorted_line_per_input() {
        let inputs = Inputs::from([vec![0xff], vec![0, 0x1a]]);
        assert_eq!(encode(&inputs), "001a\nff\n");
        assert_eq!(decode("001a\nff\n").unwrap(), inputs);
    }

    #[test]
    fn what_is_packed_is_unpacked_beside_what_a_fuzzer_found() {
        let directory = tempfile::tempdir().unwrap();
        let (corpus, file) = (directory.path().join("corpus"), directory.path().join("target.hex"));
        fs::write(&file, "0102\n03\n").unwrap();
        fs::create_dir(&corpus).unwrap();
        fs::write(corpus.join("found"), [4]).unwrap();
        assert_eq!(unpack(&file, &corpus).unwrap(), 2);
        assert_eq!(pack(&corpus, &file).unwrap(), 3);
        assert_eq!(fs::read_to_string(&file).unwrap(), "0102\n03\n04\n");
    }

    #[test]
    fn an_empty_pack_is_neither_written_nor_read() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("empty"), []).unwrap();
        assert!(pack(directory.path(), &directory.path().join("target.hex")).is_err());
        assert!(decode("").is_err());
    }

    #[test]
    fn a_line_that_is_not_hexadecimal_is_named() {
        for text in ["00\n0\n", "00\n0g\n", "00\n+1\n"] {
            assert_eq!(decode(text).unwrap_err().to_string(), "line 2 is not hexadecimal", "{text:?}");
        }
    }
}
