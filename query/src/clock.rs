//! The clock: read here and nowhere else.

use cardhour_domain::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
