//! Suggestions for names that are misspelt.

/// The longest name that is compared, in bytes: the comparison takes the product of two lengths.
const COMPARED: usize = 64;

/// The most names that are compared.
const CANDIDATES: usize = 1000;

/// Returns the candidate that is most like a name, if one is similar enough to be meant.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > COMPARED {
        return None;
    }
    let similar = candidates.into_iter().take(CANDIDATES).filter(|candidate| candidate.len() <= COMPARED);
    let measured = similar.map(|candidate| (strsim::osa_distance(name, candidate), candidate));
    let (distance, candidate) = measured.min_by_key(|(distance, _)| *distance)?;
    let longer = name.chars().count().max(candidate.chars().count());
    (distance <= (longer / 3).max(1) && distance < longer).then_some(candidate)
}

/// Returns the end of an error that suggests the candidate most like a name, or nothing.
pub(super) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|candidate| format!("; did you mean `{candidate}`?")).unwrap_or_default()
}
