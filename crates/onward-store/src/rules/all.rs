//! What several writes as one may hold.

use crate::limits;
use crate::outcome::Refusal;
use crate::write::Write;

/// Checks the members of a [`Write::All`] before any of them acts.
///
/// # Errors
/// [`Refusal::Invalid`] for too many members, or for an `All` among them.
pub fn check(members: &[Write]) -> Result<(), Refusal> {
    if members.len() > limits::ALL {
        return Err(Refusal::Invalid(format!(
            "{} writes were to be done as one and the limit is {}; split them",
            members.len(),
            limits::ALL
        )));
    }
    match members.iter().position(|member| matches!(member, Write::All(_))) {
        None => Ok(()),
        Some(index) => Err(Refusal::Invalid(format!(
            "number {index} of the writes to be done as one is itself several writes; put its members in its place"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_all_within_an_all_is_refused() {
        let refusal = check(&[Write::Sweep, Write::All(vec![])]).unwrap_err();
        assert!(refusal.to_string().contains("number 1"), "{refusal}");
    }
}
