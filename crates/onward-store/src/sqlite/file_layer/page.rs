//! The layout of a page with a checksum.
//!
//! The last eight bytes of a page are a CRC-32 (of zlib, ISO 3309) and a constant. The CRC covers
//! the number of the page and all bytes before it. It detects every flip of up to three bits of a
//! page (Koopman, "32-bit cyclic redundancy codes for Internet applications", DSN 2002), and misses
//! other damage once in four billion times. It includes the number so that it also detects a page
//! that was written in place of another.

use crc32fast::Hasher;

/// The number of bytes of the checksum at the end of each page.
pub(in crate::sqlite) const CHECKSUM_BYTES: u8 = 8;

/// The constant that follows the CRC. Another kind of checksum would have another constant.
const MARK: [u8; 4] = *b"onw1";

/// The smallest and the largest page size that SQLite accepts, in bytes.
const SIZES: std::ops::RangeInclusive<usize> = 512..=65_536;

/// The layout of the pages, as the header of a database file states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// The pages have no checksums.
    Plain,
    /// The pages have checksums, and this size in bytes.
    Checked(usize),
}

impl Pages {
    /// The number of bytes of the header that show the layout.
    pub(super) const HEADER: usize = 21;

    /// Returns the layout by the header of a file; `None` if the bytes are no header.
    pub(super) fn of_header(header: &[u8]) -> Option<Self> {
        let header = header.first_chunk::<{ Self::HEADER }>()?;
        if !header.starts_with(b"SQLite format 3\0") {
            return None;
        }
        // The largest size does not fit into 16 bits, and is stored as 1.
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        let is_checked = header[20] == CHECKSUM_BYTES && size.is_power_of_two() && SIZES.contains(&size);
        Some(if is_checked { Self::Checked(size) } else { Self::Plain })
    }
}

/// Puts the checksum into a page. Pages are numbered from one.
pub(super) fn seal(page: &mut [u8], number: u64) {
    if let Some((content, end)) = page.split_last_chunk_mut::<{ CHECKSUM_BYTES as usize }>() {
        *end = checksum(content, number);
    }
}

/// Returns true if a page has its checksum. A page of zeros was never written, because a file may
/// be longer than its content; it counts as intact.
pub(super) fn is_intact(page: &[u8], number: u64) -> bool {
    match page.split_last_chunk::<{ CHECKSUM_BYTES as usize }>() {
        Some((content, end)) => *end == checksum(content, number) || page.iter().all(|byte| *byte == 0),
        None => false,
    }
}

/// Returns true if a page ends with the constant. In a file whose header shows no checksums, a
/// first page that does so means that the header is damaged.
pub(super) fn is_sealed(page: &[u8]) -> bool {
    page.ends_with(&MARK)
}

/// Returns the last bytes of a page: the CRC and the constant.
fn checksum(content: &[u8], number: u64) -> [u8; CHECKSUM_BYTES as usize] {
    let mut hasher = Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(content);
    let [a, b, c, d] = hasher.finalize().to_le_bytes();
    let [e, f, g, h] = MARK;
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let mut page: Vec<u8> = (0..512_u32).map(|place| (place % 251) as u8).collect();
        seal(&mut page, 7);
        page
    }

    #[test]
    fn a_sealed_page_is_intact() {
        assert!(is_intact(&sealed(), 7));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..sealed().len() * 8 {
            let mut page = sealed();
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_intact(&page, 7), "bit {bit}");
        }
    }

    #[test]
    fn a_page_in_the_place_of_another_is_noticed() {
        assert!(!is_intact(&sealed(), 8));
    }

    #[test]
    fn a_page_that_was_never_written_is_intact() {
        assert!(is_intact(&[0; 512], 7));
    }

    #[test]
    fn what_is_no_header_says_nothing_of_pages() {
        assert_eq!(Pages::of_header(&[b'x'; 100]), None);
    }

    #[test]
    fn the_size_of_a_page_is_read_from_the_header() {
        let mut header = [0; Pages::HEADER];
        header[..16].copy_from_slice(b"SQLite format 3\0");
        (header[16], header[20]) = (0x10, CHECKSUM_BYTES);
        assert_eq!(Pages::of_header(&header), Some(Pages::Checked(4096)));
    }
}
