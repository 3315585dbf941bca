//! Compatibility flags: the behaviour of the engine that began a history.

use minicbor::decode::Error;
use minicbor::{Decode, Decoder, Encode, Encoder};

/// Numbers from 0 to 63 for ways in which engines differ although they run the same code. A history
/// keeps the flags with which it began, and every replay of it follows them. A number keeps its
/// meaning for ever: it is part of the file format.
///
/// For example, a change of the order in which code receives arrivals takes the next number.
/// Histories with that number are replayed in the new order, and others in the old one. No number
/// is in use so far. A history with a number that this version does not know is rejected before any
/// of it is replayed, and left to engines that know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompatibilityFlags(u64);

impl CompatibilityFlags {
    /// All flags that this version knows.
    pub const KNOWN: Self = Self(0);

    /// Returns the numbers that are set, the lowest first.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |number| self.0 >> number & 1 == 1)
    }
}

impl<Context> Encode<Context> for CompatibilityFlags {
    fn encode<Writer: minicbor::encode::Write>(
        &self,
        encoder: &mut Encoder<Writer>,
        _: &mut Context,
    ) -> Result<(), minicbor::encode::Error<Writer::Error>> {
        encoder.u64(self.0)?.ok()
    }
}

impl<'bytes, Context> Decode<'bytes, Context> for CompatibilityFlags {
    fn decode(decoder: &mut Decoder<'bytes>, _: &mut Context) -> Result<Self, Error> {
        let flags = Self(decoder.u64()?);
        match Self(flags.0 & !Self::KNOWN.0).numbers().next() {
            None => Ok(flags),
            Some(number) => Err(Error::message(format!("this version does not know compatibility flag {number}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use onward_store::HistoryChunk;

    use super::super::history::{HistoryEvent, decode_history, encode};
    use super::*;

    #[test]
    fn the_numbers_of_flags_are_those_of_their_bits() {
        assert!(CompatibilityFlags(1 | 1 << 5 | 1 << 63).numbers().eq([0, 5, 63]));
    }

    #[test]
    fn a_history_with_a_flag_of_a_later_version_is_refused_with_the_remedy() {
        let flags = Some(CompatibilityFlags(1 << 40));
        let event = HistoryEvent::Started { at: 0, seed: 1, version: None, flags };
        let chunk = HistoryChunk { first: 0, events: 1, chunk: encode(&[event]).unwrap().into() };
        let error = decode_history(&chunk).unwrap_err().to_string();
        assert!(error.contains("event 0") && error.contains("compatibility flag 40"), "{error}");
        assert!(error.contains("use the version that wrote it"), "{error}");
    }

    #[test]
    fn a_history_without_flags_is_written_as_before_there_were_any() {
        let of = |flags| encode(&[HistoryEvent::Started { at: 0, seed: 1, version: None, flags }]).unwrap();
        assert_eq!(of(None), [0x82, 0x01, 0x82, 0x00, 0x01]);
    }

    #[test]
    fn flags_that_this_version_knows_are_read_as_they_were_written() {
        let bytes = minicbor::to_vec(CompatibilityFlags::KNOWN).unwrap();
        assert_eq!(minicbor::decode::<CompatibilityFlags>(&bytes).unwrap(), CompatibilityFlags::KNOWN);
    }
}
