//! Looking into JSON without making a tree of it: values stay text until somebody asks for them.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Name and value of a member of an object.
pub type Entry<'a> = (Cow<'a, str>, &'a RawValue);

/// The members of an object, in order; none for any other value.
pub fn object(value: &RawValue) -> Option<Vec<Entry<'_>>> {
    value.get().starts_with('{').then(|| serde_json::from_str(value.get()).ok().map(|Members(all)| all)).flatten()
}

/// The elements of a list, in order; none for any other value.
pub fn list(value: &RawValue) -> Option<Vec<&RawValue>> {
    value.get().starts_with('[').then(|| serde_json::from_str(value.get()).ok()).flatten()
}

/// The member of that name.
pub fn get<'a>(entries: &[Entry<'a>], name: &str) -> Option<&'a RawValue> {
    entries.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
}

/// A value as a cell of a table has it: texts unquoted, numbers and truth values as written, plain lists joined by `,`, lists of
/// anything else as JSON. None for null, empty texts and empty lists. Objects as JSON.
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let raw = value.get();
    match raw.as_bytes().first()? {
        b'n' => None,
        b'"' => {
            // Half of a surrogate pair is no text; then what stands there stays as it is.
            let text = serde_json::from_str(raw).map_or(Cow::Borrowed(raw), |Text(text)| text);
            Some(text).filter(|text| !text.is_empty())
        }
        b'[' => joined(value),
        _ => Some(Cow::Borrowed(raw)),
    }
}

fn joined(value: &RawValue) -> Option<Cow<'_, str>> {
    let elements = list(value)?;
    if elements.iter().any(|element| element.get().starts_with(['[', '{'])) {
        return Some(Cow::Borrowed(value.get()));
    }
    let texts: Vec<_> = elements.into_iter().filter_map(text).collect();
    let text = texts.join(",");
    (!text.is_empty()).then_some(Cow::Owned(text))
}

struct Members<'a>(Vec<Entry<'a>>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some((Text(name), value)) = map.next_entry()? {
                    all.push((name, value));
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A text that borrows from the input where it holds no escapes.
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Take)
    }
}
