//! The random numbers of an orchestration.

/// A generator of numbers from a seed: `SplitMix64` (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014).
///
/// It is implemented here and not taken from a library, because a replay by a later build must draw
/// the same numbers. A library may change its numbers, and with them values made from them, such as
/// the key of a payment.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(in crate::orchestration) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of the authors' own program. They are part of the format of histories.
    ///
    /// Shows: D1
    #[test]
    fn the_numbers_of_a_seed_never_change() {
        let mut random = Random::new(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| random.draw()).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, expected);
    }
}
