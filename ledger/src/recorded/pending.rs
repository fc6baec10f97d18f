//! Imports that have begun: `importing/ID/STREAM.parquet` in the ledger's folder.
//!
//! The folder appears whole, by a rename, and goes when every table has its rows. Who holds its lock is at it; where nobody does, its writer was
//! killed, and whoever comes next finishes it: rows that are there already are not written again.

use crate::files::{Content, Wanted, encode};
use crate::tables::telemetry;
use crate::{Error, Ledger};
use cardhour_domain::Stream;
use cardhour_domain::columns::Rows;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const IMPORTING: &str = "importing";
/// Of a folder that isn't whole yet.
const UNFINISHED: &str = ".tmp";
const LOCK: &str = "lock";
/// What an import has, in the order in which it is written.
const STREAMS: [Stream; 4] = [Stream::Devices, Stream::Samples, Stream::Observations, Stream::Watches];

/// An import that is put aside; held until it is done or its process ends.
pub(super) struct Pending {
    folder: PathBuf,
    _lock: File,
}

impl Pending {
    /// All of it is in its tables.
    pub(super) fn done(self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove the folder", &self.folder)(error))
            }
            _ => Ok(()),
        }
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { doing, path, source }
}

impl Ledger {
    /// Puts an import aside, whole. None for a ledger that lies in no folder.
    pub(super) fn put_aside(&self, all: &[Rows]) -> Result<Option<Pending>, Error> {
        let Some(ledger) = self.folder() else { return Ok(None) };
        let id = uuid::Uuid::new_v4().to_string();
        let folder = ledger.join(IMPORTING).join(&id);
        let unfinished = ledger.join(IMPORTING).join(format!("{id}{UNFINISHED}"));
        fs::create_dir_all(&unfinished).map_err(failed("make the folder", &unfinished))?;
        let path = unfinished.join(LOCK);
        let lock = File::create(&path).and_then(|file| file.lock().map(|()| file)).map_err(failed("lock", &path))?;
        for rows in all.iter().filter(|rows| !rows.is_empty()) {
            let stream = rows.stream();
            let path = unfinished.join(format!("{}.parquet", stream.name()));
            let bytes = encode(&telemetry::of(stream), &rows.batch())?.bytes;
            let written =
                File::create(&path).and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
            written.map_err(failed("write", &path))?;
        }
        fs::rename(&unfinished, &folder).map_err(failed("rename", &unfinished))?;
        Ok(Some(Pending { folder, _lock: lock }))
    }

    /// Imports whose process ended before they were done.
    pub(super) fn left_aside(&self) -> Result<Vec<(Pending, Vec<Rows>)>, Error> {
        let Some(ledger) = self.folder() else { return Ok(Vec::new()) };
        let importing = ledger.join(IMPORTING);
        let entries = match fs::read_dir(&importing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed("read the folder", &importing))?,
        };
        let mut left = Vec::new();
        for entry in entries {
            let folder = entry.map_err(failed("read the folder", &importing))?.path();
            // Of another process that is at it, or was just done with it.
            let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
            if lock.try_lock().is_err() {
                continue;
            }
            let pending = Pending { folder, _lock: lock };
            if pending.folder.extension().is_some_and(|extension| extension == &UNFINISHED[1..]) {
                // It was killed before it was whole: nothing of it is in any table, and its command didn't say it was.
                pending.done()?;
                continue;
            }
            let mut all = Vec::new();
            for stream in STREAMS {
                let path = pending.folder.join(format!("{}.parquet", stream.name()));
                let file = match File::open(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    file => file.map_err(failed("read", &path))?,
                };
                let wanted = Wanted { columns: None, indexed: &[] };
                for batch in Content::Local(file).decode(telemetry::of(stream).name, wanted)? {
                    all.push(telemetry::rows(stream, &batch)?);
                }
            }
            left.push((pending, all));
        }
        Ok(left)
    }
}
