//! Z85 (RFC 32): 32 octets as 40 printable characters.

use zeroize::Zeroizing;

const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const KEY_CHARACTERS: usize = 40;

pub(super) fn encode(key: &[u8; 32]) -> String {
    let mut text = String::with_capacity(KEY_CHARACTERS);
    for chunk in key.as_chunks::<4>().0 {
        let value = u32::from_be_bytes(*chunk);
        for power in [85_u32.pow(4), 85_u32.pow(3), 85_u32.pow(2), 85, 1] {
            text.push(char::from(DIGITS[(value / power % 85) as usize]));
        }
    }
    text
}

/// Returns the octets. Returns `None` if the text is not 40 digits of the base, or if a group of
/// digits exceeds four octets.
pub(super) fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    if text.len() != KEY_CHARACTERS {
        return None;
    }
    let mut key = Zeroizing::new([0; 32]);
    for (octets, digits) in key.chunks_exact_mut(4).zip(text.as_bytes().chunks_exact(5)) {
        let mut value: u64 = 0;
        for digit in digits {
            value = value * 85 + DIGITS.iter().position(|known| known == digit)? as u64;
        }
        octets.copy_from_slice(&u32::try_from(value).ok()?.to_be_bytes());
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_the_rfc_come_out_as_written_there() {
        // RFC 26, "Test vectors": the client's public key of libzmq's tests, in both forms.
        let text = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
        let key = decode(text).unwrap();
        assert_eq!(key[..8], [0xBB, 0x88, 0x47, 0x1D, 0x65, 0xE2, 0x65, 0x9B]);
        assert_eq!(encode(&key), text);
    }

    #[test]
    fn a_group_that_four_octets_cannot_hold_is_refused() {
        assert!(decode(&"#".repeat(40)).is_none());
    }

    #[test]
    fn a_text_of_another_length_or_with_other_characters_is_refused() {
        assert!(decode("0").is_none());
        assert!(decode(&"0".repeat(45)).is_none());
        assert!(decode(&" ".repeat(40)).is_none());
        assert!(decode(&"é".repeat(20)).is_none());
    }
}
