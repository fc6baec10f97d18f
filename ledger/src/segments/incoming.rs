//! Segments that were put into the ledger's folder: `incoming/NODE/SEGMENT`.
//!
//! Who may write there delivers without a service. A segment is taken in and then removed; one that is refused goes to `incoming/NODE/refused/`.

use super::unpack::MOST_BYTES;
use super::{Segment, Taken};
use crate::{Error, Ledger};
use cardhour_domain::SegmentName;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The folder's name.
const INCOMING: &str = "incoming";
/// Segments that are taken in at a time, so that memory doesn't grow with what waits.
const TOGETHER: usize = 64;

impl Ledger {
    /// Makes the folder into which nodes may put segments. Errors: it can't be made. Nothing for a ledger that lies in no folder.
    pub fn make_incoming(&self) -> Result<(), Error> {
        let Some(path) = self.folder().map(|folder| folder.join(INCOMING)) else { return Ok(()) };
        fs::create_dir_all(&path).map_err(|source| Error::File { doing: "make the folder", path, source })
    }

    /// Whether some segment may wait there.
    pub fn has_incoming(&self) -> bool {
        self.folder().is_some_and(|folder| waiting(&folder.join(INCOMING)).is_ok_and(|waiting| !waiting.is_empty()))
    }

    /// Takes in what waits; how many segments were new. Errors: the folder can't be read, a table can't be written.
    pub(crate) async fn take_incoming(&self) -> Result<u64, Error> {
        let Some(folder) = self.folder().map(|folder| folder.join(INCOMING)) else { return Ok(0) };
        let failed = |source| Error::File { doing: "read the folder", path: folder.clone(), source };
        let mut new = 0;
        let all = waiting(&folder).map_err(failed)?;
        for some in all.chunks(TOGETHER) {
            let mut segments = Vec::new();
            let mut paths = Vec::new();
            for (node, name, path) in some {
                let bytes = match read(path) {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                        tracing::warn!(path = %path.display(), "is no file, so no segment, and kept aside");
                        set_aside(path);
                        continue;
                    }
                    // Another process may have been faster.
                    Err(_) => continue,
                };
                segments.push(Segment { node: node.as_str().into(), name: name.clone(), bytes: bytes.into() });
                paths.push(path);
            }
            for (taken, path) in self.take_segments(segments).await.into_iter().zip(paths) {
                match taken {
                    Ok(taken) => {
                        new += u64::from(matches!(taken, Taken::New(_)));
                        _ = fs::remove_file(path);
                    }
                    Err(error @ (Error::BadSegment { .. } | Error::SegmentDiffers { .. })) => {
                        tracing::warn!(%error, path = %path.display(), "segment refused and kept aside");
                        set_aside(path);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(new)
    }
}

/// What a segment has. Of what is longer than one may be no more is read than shows that. Errors: as reading has them; it is no regular file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What waits: node, name and path; oldest names first.
fn waiting(folder: &Path) -> io::Result<Vec<(String, SegmentName, PathBuf)>> {
    let nodes = match fs::read_dir(folder) {
        Ok(nodes) => nodes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut out = Vec::new();
    for node in nodes {
        let node = node?;
        let Some(name) = node.file_name().to_str().map(str::to_owned) else { continue };
        let Ok(files) = fs::read_dir(node.path()) else { continue };
        for file in files {
            let file = file?;
            let segment = file.file_name().to_str().and_then(|name| SegmentName::parse(name).ok());
            out.extend(segment.map(|segment| (name.clone(), segment, file.path())));
        }
    }
    out.sort();
    Ok(out)
}

fn set_aside(path: &Path) {
    let Some((folder, name)) = path.parent().zip(path.file_name()) else { return };
    let refused = folder.join("refused");
    _ = fs::create_dir_all(&refused).and_then(|()| fs::rename(path, refused.join(name)));
}
