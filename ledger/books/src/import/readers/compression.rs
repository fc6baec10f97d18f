//! Undoing compression: files are told by their first bytes, not by their names.

use std::borrow::Cow;
use std::io::{self, Read};

/// The most that a file may expand to where nobody says otherwise. Unit: bytes. Larger exports are cut by month.
pub const MOST_EXPANDED: u64 = 16 * 1024 * 1024 * 1024;

/// Why a file could not be expanded to text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// The compressed stream stops before its end.
    #[error("the {format} data ends after {expanded} bytes of content: the file is cut off, copy or export it again")]
    CutOff {
        /// gzip or zstd.
        format: &'static str,
        /// How much came out before. Unit: bytes.
        expanded: usize,
    },

    /// The compressed stream is damaged.
    #[error("the {format} data is damaged after {expanded} bytes of content: copy or export the file again")]
    Damaged {
        /// gzip or zstd.
        format: &'static str,
        /// How much came out before. Unit: bytes.
        expanded: usize,
        /// What the decoder says.
        source: io::Error,
    },

    /// It expands to more than is allowed.
    #[error("the file expands to more than {limit} bytes: cut the export into smaller files, by month for example")]
    TooLarge {
        /// What is allowed. Unit: bytes.
        limit: u64,
    },

    /// A compression that isn't read.
    #[error("the file is compressed with {format}, which is not read: unpack it, or pack it with gzip or zstd")]
    Unsupported {
        /// Its name.
        format: &'static str,
    },

    /// Text in UTF-16.
    #[error("the file is UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8")]
    Utf16,
}

/// The content of a file: gzip (of any number of members) and zstd expanded, anything else as it is.
///
/// `limit`: the most it may expand to, in bytes, [`MOST_EXPANDED`] for files of the site's own. Errors: as [`ExpandError`]
/// has them; text in UTF-16 is refused here because every reader takes UTF-8.
pub fn expand(file: &[u8], limit: u64) -> Result<Cow<'_, [u8]>, ExpandError> {
    let content = match file {
        [0x1f, 0x8b, ..] => Cow::Owned(drain("gzip", flate2::read::MultiGzDecoder::new(file), limit)?),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = zstd::stream::read::Decoder::with_buffer(file);
            let decoder = decoder.map_err(|source| ExpandError::Damaged { format: "zstd", expanded: 0, source })?;
            Cow::Owned(drain("zstd", decoder, limit)?)
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => return Err(ExpandError::Unsupported { format: "xz" }),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => return Err(ExpandError::Unsupported { format: "bzip2" }),
        [b'P', b'K', 3, 4, ..] => return Err(ExpandError::Unsupported { format: "zip" }),
        _ => Cow::Borrowed(file),
    };
    match &*content {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(ExpandError::Utf16),
        _ => Ok(content),
    }
}

fn drain(format: &'static str, mut decoder: impl Read, limit: u64) -> Result<Vec<u8>, ExpandError> {
    let mut content = Vec::new();
    let read = decoder.by_ref().take(limit.saturating_add(1)).read_to_end(&mut content);
    let expanded = content.len();
    if expanded as u64 > limit {
        return Err(ExpandError::TooLarge { limit });
    }
    match read {
        Ok(_) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(ExpandError::CutOff { format, expanded }),
        Err(source) => Err(ExpandError::Damaged { format, expanded, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(content, 1).unwrap()
    }

    #[test]
    fn both_compressions_come_out_as_they_went_in_and_text_stays() {
        for file in [b"a,b\n1,2\n".to_vec(), gzip(b"a,b\n1,2\n"), zstd(b"a,b\n1,2\n")] {
            assert_eq!(&*expand(&file, 100).unwrap(), b"a,b\n1,2\n");
        }
        assert_eq!(&*expand(b"", 100).unwrap(), b"");
        assert_eq!(&*expand(&gzip(b""), 100).unwrap(), b"");
    }

    #[test]
    fn members_put_end_to_end_are_one_file() {
        assert_eq!(&*expand(&[gzip(b"one\n"), gzip(b"two\n")].concat(), 100).unwrap(), b"one\ntwo\n");
        assert_eq!(&*expand(&[zstd(b"one\n"), zstd(b"two\n")].concat(), 100).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_file_that_is_cut_off_says_so() {
        let content: Vec<u8> = (0..50_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for (format, file) in [("gzip", gzip(&content)), ("zstd", zstd(&content))] {
            let error = expand(&file[..file.len() / 2], u64::MAX).unwrap_err();
            assert!(matches!(error, ExpandError::CutOff { format: f, .. } if f == format), "{error:?}");
        }
    }

    #[test]
    fn a_bomb_is_stopped_at_the_limit() {
        let zeros = vec![0; 1_000_000];
        for file in [gzip(&zeros), zstd(&zeros)] {
            assert!(matches!(expand(&file, 999_999), Err(ExpandError::TooLarge { limit: 999_999 })));
            assert_eq!(expand(&file, 1_000_000).unwrap().len(), 1_000_000);
        }
    }

    #[test]
    fn what_is_not_read_is_named() {
        assert!(expand(b"\xfd7zXZ\0rest", 9).unwrap_err().to_string().contains("xz"));
        assert!(expand(b"PK\x03\x04rest", 9).unwrap_err().to_string().contains("zip"));
        assert!(matches!(expand(b"\xff\xfeJ\0", 9), Err(ExpandError::Utf16)));
        assert!(matches!(expand(&gzip(b"\xfe\xff\0J"), 9), Err(ExpandError::Utf16)));
    }
}
