//! A file that is imported: its bytes as they lie, and its content.

use super::parquet;
use crate::error::Error;
use axum::body::Bytes;
use cardhour_books::import::map::MapFile;
use cardhour_books::import::readers::Format;
use cardhour_books::import::readers::compression::{MOST_EXPANDED, expand};
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

/// A file that was read.
pub struct Source {
    /// What it is called: in `quarantine.file` and in messages.
    pub name: String,
    bytes: Bytes,
}

/// What is in it.
pub enum Content<'a> {
    /// Text in the format that was said.
    Text(Cow<'a, [u8]>, Format),
    /// Parquet, its rows written as csv.
    Rows(Vec<u8>),
}

impl Content<'_> {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes, _) => bytes,
            Self::Rows(bytes) => bytes,
        }
    }

    /// How they are written.
    pub fn format(&self) -> Format {
        match self {
            Self::Text(_, format) => *format,
            Self::Rows(_) => Format::Csv,
        }
    }
}

/// What a file is called: its last part, as it is the same wherever the file lies; `-` for standard input.
pub fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

impl Source {
    /// Reads a file, or standard input for `-`. Errors: it can't be.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = if path == Path::new("-") {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|source| Error::Stream { doing: "read standard input", source })?;
            bytes
        } else {
            std::fs::read(path).map_err(|source| Error::File { doing: "read", path: path.to_owned(), source })?
        };
        Ok(Self { name: name(path), bytes: bytes.into() })
    }

    /// How it is written: as said, as the map says, as its first bytes or its name say. Errors: nothing says.
    pub fn format(&self, said: Option<Format>, map: Option<&MapFile>) -> Result<Format, Error> {
        said.or_else(|| map.and_then(|map| map.format))
            .or_else(|| self.bytes.starts_with(b"PAR1").then_some(Format::Parquet))
            .or_else(|| format_of_name(&self.name))
            .ok_or_else(|| Error::NoFormat(self.name.clone()))
    }

    /// What is in it, unpacked. Errors: it is cut off, damaged, too large, or packed in a way that isn't read.
    pub fn content(&self, format: Format) -> Result<Content<'_>, Error> {
        let failed = |error| Error::Expand { file: self.name.clone(), source: Box::new(error) };
        if format == Format::Parquet {
            return Ok(Content::Rows(parquet::to_csv(self.bytes.clone(), &self.name)?));
        }
        Ok(Content::Text(expand(&self.bytes, MOST_EXPANDED).map_err(failed)?, format))
    }
}

fn format_of_name(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let name = [".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "csv" => Some(Format::Csv),
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        "json" => Some(Format::SacctJson),
        "parquet" => Some(Format::Parquet),
        "sacct" => Some(Format::Sacct),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_how_it_is_written_packed_or_not() {
        for (name, expected) in [
            ("jobs.csv", Some(Format::Csv)),
            ("JOBS.CSV.GZ", Some(Format::Csv)),
            ("a.b.jsonl.zst", Some(Format::Jsonl)),
            ("sacct.json", Some(Format::SacctJson)),
            ("part-0.parquet", Some(Format::Parquet)),
            ("jobs.txt", None),
            ("-", None),
        ] {
            assert_eq!(format_of_name(name), expected, "{name}");
        }
        let source = Source { name: "jobs".into(), bytes: Bytes::from_static(b"PAR1....PAR1") };
        assert_eq!(source.format(None, None).unwrap(), Format::Parquet);
        assert_eq!(source.format(Some(Format::Sacct), None).unwrap(), Format::Sacct);
        assert!(Source { name: "-".into(), bytes: Bytes::new() }.format(None, None).is_err());
    }
}
