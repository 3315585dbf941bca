//! The number of commands that run at once: `4`, or `50%` of the cores.

use std::str::FromStr;

/// The largest number of commands that can run at once.
const MOST: u32 = u16::MAX as u32;

/// A number of commands, as the user types it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jobs {
    /// This number.
    Count(usize),
    /// This percentage of the cores.
    Percent(u32),
}

impl Jobs {
    /// Returns the number on this machine, at least one.
    pub(crate) fn count(self) -> usize {
        self.of(std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn of(self, cores: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => cores.saturating_mul(percent as usize).div_ceil(100).max(1),
        }
    }
}

impl FromStr for Jobs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, is_percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
        match digits.parse::<u32>() {
            Ok(percent @ 1..=MOST) if is_percent => Ok(Self::Percent(percent)),
            Ok(count @ 1..=MOST) => Ok(Self::Count(count as usize)),
            _ => Err(format!("`{text}` is not a number of jobs; write it as 4 (1 to {MOST}), or as 50% of the cores")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_cores_is_rounded_up_and_at_least_one() {
        let of = |text: &str, cores| text.parse::<Jobs>().unwrap().of(cores);
        assert_eq!([of("50%", 8), of("50%", 3), of("1%", 2), of("200%", 4), of("6", 2)], [4, 2, 1, 8, 6]);
    }

    #[test]
    fn nothing_and_none_are_refused_with_the_forms() {
        for text in ["0", "0%", "", "-1", "many", "65536"] {
            assert!(text.parse::<Jobs>().unwrap_err().contains("50%"), "{text}");
        }
    }
}
