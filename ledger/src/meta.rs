//! What a ledger says of itself: one small file, written once.

use crate::Error;
use cardhour_domain::Zone;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, path::Path};
use serde_json::{Value, json};
use std::sync::Arc;
use url::Url;

const FILE: &str = "ledger.json";
const FORMAT: u64 = 1;

/// The billing zone and the nature of a ledger, fixed when it is made (LED-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Periods are cut by this zone.
    pub zone: Zone,
    /// Made by `cardhour demo`: every page and report says so.
    pub simulated: bool,
}

/// Where a ledger lies.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) text: String,
    pub(crate) url: Url,
}

impl Place {
    /// From a folder or a URL. Errors: neither.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let failed = |reason: String| Error::Place { place: text.to_owned(), reason };
        let url = match Url::parse(text) {
            Ok(mut url) if text.contains("://") => {
                if !url.path().ends_with('/') {
                    url.set_path(&format!("{}/", url.path()));
                }
                url
            }
            _ => {
                let path = std::path::absolute(text).map_err(|e| failed(e.to_string()))?;
                Url::from_directory_path(path).map_err(|()| failed("no absolute path".to_owned()))?
            }
        };
        if url.scheme() != "file" {
            return Err(failed(format!(
                "this build keeps ledgers in local folders; {}:// is not among its stores",
                url.scheme()
            )));
        }
        Ok(Self { text: text.to_owned(), url })
    }

    pub(crate) fn folder(&self) -> Option<std::path::PathBuf> {
        self.url.to_file_path().ok()
    }

    fn store(&self) -> Result<Arc<object_store::local::LocalFileSystem>, Error> {
        let failed = |reason: String| Error::Place { place: self.text.clone(), reason };
        let folder = self.folder().ok_or_else(|| failed("no local folder".to_owned()))?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(folder).map_err(|e| failed(e.to_string()))?;
        Ok(Arc::new(store))
    }

    /// What the ledger says of itself; none where there is none.
    pub(crate) async fn read(&self) -> Result<Option<Meta>, Error> {
        let Some(folder) = self.folder() else { return Ok(None) };
        if !folder.join(FILE).exists() {
            return Ok(None);
        }
        let damaged = |what: String| Error::damaged(FILE, what);
        let bytes = self.store()?.get(&Path::from(FILE)).await.map_err(|e| damaged(e.to_string()))?;
        let bytes = bytes.bytes().await.map_err(|e| damaged(e.to_string()))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        let found = value["format"].as_u64().unwrap_or(u64::MAX);
        if found > FORMAT {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(Error::TooNew {
                place: self.text.clone(),
                table: FILE.to_owned(),
                found,
                known: FORMAT as u32,
            });
        }
        let zone = value["zone"].as_str().unwrap_or_default();
        let zone = Zone::parse(zone).map_err(|e| damaged(e.to_string()))?;
        Ok(Some(Meta { zone, simulated: value["simulated"].as_bool().unwrap_or(false) }))
    }

    /// Makes the ledger, or gives what is there when somebody else made it first.
    pub(crate) async fn make(&self, meta: Meta) -> Result<Meta, Error> {
        if let Some(folder) = self.folder() {
            make_private(&folder)?;
        }
        let text = json!({"format": FORMAT, "zone": meta.zone.name(), "simulated": meta.simulated}).to_string();
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store()?.put_opts(&Path::from(FILE), (text + "\n").into(), options).await {
            Ok(_) => Ok(meta),
            Err(object_store::Error::AlreadyExists { .. }) => self.read().await.map(|there| there.unwrap_or(meta)),
            Err(error) => Err(Error::Place { place: self.text.clone(), reason: error.to_string() }),
        }
    }
}

/// Makes a folder that only its owner can look into: whoever can read the files sees everything.
fn make_private(folder: &std::path::Path) -> Result<(), Error> {
    let failed = |source| Error::File { doing: "make the folder", path: folder.to_owned(), source };
    if folder.exists() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(failed)
}
