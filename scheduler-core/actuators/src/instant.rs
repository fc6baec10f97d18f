//! Instants in JSON: RFC 3339, UTC.

use cardhour_domain::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes one.
pub fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(at)
}

/// Reads one. Errors: not RFC 3339.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    Timestamp::parse_rfc3339(&text).map_err(D::Error::custom)
}

/// The later of an instant by so many seconds; the last one there is, where it leaves their range.
pub(crate) fn after_s(at: Timestamp, seconds: u32) -> Timestamp {
    at.checked_add_ms(i64::from(seconds) * 1000).unwrap_or(Timestamp::from_unix_ms(i64::MAX))
}

/// Instants that may be absent.
pub mod optional {
    use super::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes one.
    pub fn serialize<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => to.collect_str(at),
            None => to.serialize_none(),
        }
    }

    /// Reads one. Errors: not RFC 3339.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| Timestamp::parse_rfc3339(&text).map_err(D::Error::custom)).transpose()
    }
}
