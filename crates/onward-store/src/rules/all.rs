//! The bounds of several writes applied as one.

use crate::api::outcome::Refusal;
use crate::api::write::Write;
use crate::bounds;

/// Checks the writes of a [`Write::All`] before any of them is applied.
///
/// # Errors
/// [`Refusal::Invalid`] for more than [`bounds::ALL`] writes, or for an `All` among them.
pub fn check(writes: &[Write]) -> Result<(), Refusal> {
    check_size(writes.len())?;
    match writes.iter().position(|write| matches!(write, Write::All(_))) {
        None => Ok(()),
        Some(index) => {
            Err(Refusal::Invalid(format!("write {index} of an `All` is itself an `All`; put its writes in its place")))
        }
    }
}

/// Checks the number of writes that are applied as one.
///
/// # Errors
/// [`Refusal::Invalid`] for more than [`bounds::ALL`].
pub fn check_size(writes: usize) -> Result<(), Refusal> {
    if writes <= bounds::ALL {
        return Ok(());
    }
    Err(Refusal::Invalid(format!(
        "{writes} writes cannot be applied as one, because the limit is {}; split them",
        bounds::ALL
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_all_within_an_all_is_refused() {
        let refusal = check(&[Write::Sweep, Write::All(vec![])]).unwrap_err();
        assert!(refusal.to_string().contains("write 1"), "{refusal}");
    }
}
