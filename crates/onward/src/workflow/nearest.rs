//! Suggestions for names that are misspelt.

/// The longest name that is compared, in bytes: the comparison takes the product of two lengths.
const COMPARED: usize = 64;

/// The most names that are compared.
const CANDIDATES: usize = 1000;

/// Returns the candidate that is most like a name, if one is similar enough to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|candidate| format!("; did you mean `{candidate}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_has_the_nearest_as_suggestion() {
        let fields = ["depends_on", "deadline", "task", "with"];
        assert_eq!(nearest("depend_on", fields), Some("depends_on"));
        assert_eq!(nearest("taks", fields), Some("task"));
    }

    #[test]
    fn a_name_that_is_like_none_has_no_suggestion() {
        assert_eq!(nearest("colour", ["depends_on", "task"]), None);
        assert_eq!(nearest("x", ["a"]), None);
        assert_eq!(nearest(&"a".repeat(100), ["a"]), None);
    }
}
