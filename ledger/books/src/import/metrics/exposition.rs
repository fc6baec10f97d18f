//! The text format of Prometheus: `name{label="value"} 12 1700000000000`.

use super::labels::Labels;

/// A sample of the text format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The metric.
    pub name: &'a str,
    /// Its labels.
    pub labels: Labels,
    /// The value as it is written.
    pub value: &'a str,
    /// The timestamp as it is written: milliseconds, or in OpenMetrics seconds.
    pub timestamp: Option<&'a str>,
}

/// Reads one line; none where it is blank or a comment. Errors: what is wrong with it.
pub fn read(line: &str) -> Result<Option<Line<'_>>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let name_length = line.find(|c: char| c == '{' || c.is_ascii_whitespace()).ok_or("has no value")?;
    let (name, rest) = line.split_at(name_length);
    if name.is_empty() {
        return Err("has no name");
    }
    let mut labels = Labels::default();
    let rest = match rest.trim_start().strip_prefix('{') {
        Some(inside) => read_labels(inside, &mut labels)?,
        None => rest,
    };
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().ok_or("has no value")?;
    // What follows a # is an exemplar.
    let timestamp = words.next().filter(|word| !word.starts_with('#'));
    Ok(Some(Line { name, labels, value, timestamp }))
}

/// Reads labels up to the closing brace and gives what follows it.
fn read_labels<'a>(mut rest: &'a str, labels: &mut Labels) -> Result<&'a str, &'static str> {
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            return Ok(after);
        }
        let (name, value) = rest.split_once('=').ok_or("has a label without a value")?;
        let inside = value.trim_start().strip_prefix('"').ok_or("has a label whose value stands in no quotes")?;
        let mut text = String::new();
        let mut chars = inside.char_indices();
        let end = loop {
            match chars.next().ok_or("has a label whose quotes don't close")? {
                (at, '"') => break at + 1,
                (_, '\\') => match chars.next().ok_or("ends in a backslash")?.1 {
                    'n' => text.push('\n'),
                    other => text.push(other),
                },
                (_, other) => text.push(other),
            }
        };
        labels.set(name.trim(), &text);
        rest = &inside[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_any_spacing_and_escapes_are_read() {
        let line = read(r#"M{gpu="0", UUID="GPU-1",pod="a\"b\\c\nd",} 139 1700000000000"#).unwrap().unwrap();
        assert_eq!((line.name, line.value, line.timestamp), ("M", "139", Some("1700000000000")));
        assert_eq!(line.labels.get("UUID"), Some("GPU-1"));
        assert_eq!(line.labels.get("pod"), Some("a\"b\\c\nd"));
        let bare = read("up 1").unwrap().unwrap();
        assert_eq!((bare.name, bare.value, bare.timestamp), ("up", "1", None));
        assert_eq!(read("# HELP M text").unwrap(), None);
        for wrong in ["M", "M{a=\"b} 1", "M{a=b} 1", "M{a} 1", "{a=\"b\"} 1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
