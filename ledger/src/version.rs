//! Whether anything was written since somebody looked.

use crate::Reading;
use std::collections::BTreeMap;

/// The version of each table that reports are made of. Two that are equal are of the same books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BooksVersion(BTreeMap<String, i64>);

impl Reading {
    /// The version of these books; costs nothing, since all of its tables are open.
    pub fn version(&self) -> BooksVersion {
        let mut versions = self.facts.marks();
        versions.insert(self.usage.table.name.to_owned(), self.usage.version());
        if let Some(observed) = &self.observed {
            versions.insert(observed.table.name.to_owned(), observed.version());
        }
        if let Some(closed) = &self.closed {
            let frozen = [&closed.usage, &closed.jobs, &closed.entries];
            versions.extend(frozen.map(|snapshot| (snapshot.table.name.to_owned(), snapshot.version())));
            let closings = i64::try_from(closed.closings.len()).expect("fewer months than that are closed");
            versions.insert("closings".to_owned(), closings);
        }
        BooksVersion(versions)
    }
}
