//! From a site's export to attempts: readers make records of any format, the mapping makes attempts of records.

pub mod readers;
pub mod record;
