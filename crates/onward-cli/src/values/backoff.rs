//! Back-off between attempts: `5s`, `linear:1s:1s:1m`, `exp:1s:60s`, `jitter:1s:60s`.

use std::time::Duration;

use onward_store::rules::retry::Backoff;

use super::duration::parse_duration;

const FACTOR: f64 = 2.0;

/// Reads a back-off.
pub(crate) fn parse_backoff(text: &str) -> Result<Backoff, String> {
    let (form, rest) = text.split_once(':').unwrap_or(("constant", text));
    let delays = rest.split(':').map(parse_duration).collect::<Result<Vec<_>, _>>()?;
    of_form(form, &delays).ok_or_else(|| {
        format!(
            "`{text}` is not a back-off; write a delay (5s), linear:FIRST:MORE:LONGEST, \
             exp:FIRST:LONGEST (doubling) or jitter:FIRST:LONGEST (doubling, at random below)"
        )
    })
}

fn of_form(form: &str, delays: &[Duration]) -> Option<Backoff> {
    match (form, delays) {
        ("constant", &[delay]) => Some(Backoff::Constant { delay }),
        ("linear", &[initial, increment, maximum]) => Some(Backoff::Linear { initial, increment, maximum }),
        ("exp", &[initial, maximum]) => Some(Backoff::Exponential { initial, factor: FACTOR, maximum }),
        ("jitter", &[initial, maximum]) => Some(Backoff::ExponentialJitter { initial, factor: FACTOR, maximum }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_delay_is_constant() {
        assert_eq!(parse_backoff("5s").unwrap(), Backoff::Constant { delay: Duration::from_secs(5) });
    }

    #[test]
    fn exp_doubles_up_to_its_longest() {
        let backoff = parse_backoff("exp:1s:60s").unwrap();
        assert_eq!(backoff.delay(3, 0), Duration::from_secs(4));
        assert_eq!(backoff.delay(30, 0), Duration::from_secs(60));
    }

    #[test]
    fn an_unknown_form_is_refused_with_the_known_ones() {
        assert!(parse_backoff("fibonacci:1s").unwrap_err().contains("exp:FIRST:LONGEST"));
    }

    #[test]
    fn a_wrong_delay_inside_is_named() {
        assert!(parse_backoff("exp:soon:60s").unwrap_err().contains("`soon` is not a duration"));
    }
}
