//! How a text of sacct is laid out: its delimiter, its columns, and what their values look like.

use super::lines::Lines;
use super::sacct_names::{Look, is_known};
use super::{Format, ReadError, ReaderOptions, blank};
use memchr::memmem::Finder;
use std::ops::Range;

/// Delimiters that are tried where the map names none, the likeliest first.
const DELIMITERS: [&str; 8] = ["|", "|#", "\t", ";", ",", "^", "~", "\u{1}"];

/// How many lines are looked at to find out whether records end with a delimiter.
const LINES_LOOKED_AT: usize = 1000;

/// Delimiter and columns of a text.
#[derive(Clone, Debug)]
pub struct Layout {
    delimiter: Finder<'static>,
    /// The names as they stand in the file or in `fields`; one more, empty, where records end with a delimiter.
    header: Vec<String>,
    trailing: bool,
    looks: Vec<Look>,
    /// The column that tells a job's id.
    id: Option<usize>,
}

impl Layout {
    /// From `fields`, or from the first line that isn't blank. Errors: that line names no fields of sacct; an empty delimiter.
    pub fn find(lines: Lines, options: &ReaderOptions) -> Result<Self, ReadError> {
        if let Some(delimiter @ ("" | "\n" | "\r" | "\r\n")) = options.delimiter.as_deref() {
            let why = "it must be at least one character and no line end";
            return Err(ReadError::Delimiter { delimiter: delimiter.to_owned(), format: Format::Sacct, why });
        }
        let candidates: Vec<&str> = match options.delimiter.as_deref() {
            Some("\\t") => vec!["\t"],
            Some(delimiter) => vec![delimiter],
            None => DELIMITERS.to_vec(),
        };
        match &options.fields {
            Some(fields) => Ok(Self::of_fields(lines, &candidates, fields)),
            None => Self::of_header(lines, &candidates),
        }
    }

    fn of_header(mut lines: Lines, candidates: &[&str]) -> Result<Self, ReadError> {
        let line = lines.next_written().ok_or(ReadError::Empty)?;
        let text =
            std::str::from_utf8(lines.text(&line)).map_err(|_| ReadError::HeaderNotUtf8 { line: line.number })?;
        for delimiter in candidates {
            let mut header: Vec<&str> = text.split(delimiter).map(str::trim).collect();
            let trailing = header.len() > 1 && header.last() == Some(&"");
            if trailing {
                header.pop();
            }
            if names_columns(&header) {
                return Ok(Self::new(delimiter, header, trailing));
            }
        }
        Err(ReadError::NoHeader { line: line.number, text: text.chars().take(80).collect() })
    }

    fn of_fields(lines: Lines, candidates: &[&str], fields: &[String]) -> Self {
        let fields: Vec<&str> = fields.iter().map(|name| name.trim()).collect();
        for delimiter in candidates {
            let mut rest = lines;
            let finder = Finder::new(delimiter);
            for _ in 0..LINES_LOOKED_AT {
                let Some(line) = rest.next_written() else { break };
                let text = rest.text(&line);
                let found = finder.find_iter(text).count() + 1;
                if found == fields.len() && (found > 1 || candidates.len() == 1) {
                    return Self::new(delimiter, fields, false);
                }
                if found == fields.len() + 1 && text.ends_with(delimiter.as_bytes()) {
                    return Self::new(delimiter, fields, true);
                }
            }
        }
        Self::new(candidates[0], fields, false)
    }

    fn new(delimiter: &str, header: Vec<&str>, trailing: bool) -> Self {
        // A column that nobody asks for may hold anything.
        let look = |name: &&str| if blank(name) { Look::Free } else { Look::of(name) };
        let mut looks: Vec<Look> = header.iter().map(look).collect();
        if trailing {
            looks.push(Look::Nothing);
        }
        let id = looks.iter().position(|look| *look == Look::JobId);
        let header = header.into_iter().map(str::to_owned).collect();
        Self { delimiter: Finder::new(delimiter).into_owned(), header, trailing, looks, id }
    }

    /// The columns, as they are named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.header.iter().map(String::as_str)
    }

    /// How many fields a whole record has, the empty one behind a delimiter at its end counted.
    pub fn width(&self) -> usize {
        self.looks.len()
    }

    /// How many fields a text has.
    pub fn count(&self, text: &[u8]) -> usize {
        self.delimiter.find_iter(text).count() + 1
    }

    /// The fields of a text, in order.
    fn fields<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        let mut start = 0;
        let ends = self.delimiter.find_iter(text).chain(std::iter::once(text.len()));
        ends.map(move |end| &text[std::mem::replace(&mut start, end + self.delimiter.needle().len())..end])
    }

    /// Where the fields of `range` stand.
    pub fn cuts(&self, input: &[u8], range: Range<usize>) -> Vec<Range<usize>> {
        let mut cuts = Vec::with_capacity(self.width());
        let mut start = range.start;
        for at in self.delimiter.find_iter(&input[range.clone()]) {
            cuts.push(start..range.start + at);
            start = range.start + at + self.delimiter.needle().len();
        }
        cuts.push(start..range.end);
        cuts
    }

    /// Whether as many fields as there are columns look like their columns, and line ends stand in users' texts only.
    pub fn fits(&self, input: &[u8], cuts: &[Range<usize>]) -> bool {
        cuts.len() == self.width()
            && cuts.iter().zip(&self.looks).all(|(cut, look)| {
                let value = &input[cut.clone()];
                *look == Look::Free || (look.fits(value) && memchr::memchr(b'\n', value).is_none())
            })
    }

    /// The fields of `range`, which has too many, with the surplus in the one text column that leaves all others looking as
    /// they should. None where no column does, or more than one.
    pub fn fold(&self, input: &[u8], range: Range<usize>) -> Option<Vec<Range<usize>>> {
        let cuts = self.cuts(input, range);
        let surplus = cuts.len().checked_sub(self.width())?;
        let folded = |column: usize| {
            let mut folded = cuts[..column].to_vec();
            folded.push(cuts[column].start..cuts[column + surplus].end);
            folded.extend_from_slice(&cuts[column + surplus + 1..]);
            folded
        };
        let free = (0..self.width()).filter(|&column| self.looks[column] == Look::Free);
        let mut fitting = free.map(folded).filter(|cuts| self.fits(input, cuts));
        let found = fitting.next()?;
        fitting.next().is_none().then_some(found)
    }

    /// Whether a line can't go on with the record before it, since it is one by itself: a job's id stands where lines begin, or
    /// it has as many fields as columns, with a job's id among them where it belongs.
    pub fn begins_anew(&self, line: &[u8], fields: usize) -> bool {
        match self.id {
            Some(0) => self.begins_like_a_record(line),
            Some(_) => fields == self.width() && self.begins_like_a_record(line),
            None => fields == self.width(),
        }
    }

    /// Whether a line has a job's id where it belongs.
    pub fn begins_like_a_record(&self, line: &[u8]) -> bool {
        self.id.is_some_and(|id| self.fields(line).nth(id).is_some_and(|value| Look::JobId.fits(value)))
    }

    /// Whether the last column is a user's text and no delimiter closes it.
    pub fn ends_in_free_text(&self) -> bool {
        self.looks.last() == Some(&Look::Free) && self.width() > 1
    }

    /// Whether a line of names stands here, and if so, whether it names our columns; names in `fields` that aren't sacct's
    /// match any.
    pub fn header_matches(&self, line: &[u8]) -> Option<bool> {
        if !line.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic) {
            return None;
        }
        let mut fields: Vec<&str> = Vec::new();
        for field in self.fields(line.trim_ascii()) {
            fields.push(
                std::str::from_utf8(field).ok().map(str::trim).filter(|field| is_word(field) || field.is_empty())?,
            );
        }
        if self.trailing && fields.last() == Some(&"") {
            fields.pop();
        }
        names_columns(&fields).then(|| {
            let same =
                |(field, name): (&&str, &String)| blank(name) || !is_known(name) || field.eq_ignore_ascii_case(name);
            fields.len() == self.header.len() && fields.iter().zip(&self.header).all(same)
        })
    }
}

/// Whether these are names of sacct's fields: a job's id is among them, and most are known. Not all need be, so that a newer
/// Slurm can have more.
fn names_columns(names: &[&str]) -> bool {
    names.iter().all(|name| is_word(name))
        && names.iter().any(|name| Look::of(name) == Look::JobId)
        && names.iter().filter(|name| is_known(name)).count() * 2 > names.len()
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
