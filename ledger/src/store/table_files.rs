//! Files of a table, read and written by the threads that work on them.
//!
//! Whoever encodes a file writes it, and whoever decodes one reads it, so that a core waits for no other thread and no more files are in
//! memory than there are cores.

use crate::Error;
use crate::files::Content;
use deltalake::Path;
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Up to this size a file is read whole: one call where many for its columns would be. Unit: bytes.
const READ_WHOLE: u64 = 8 << 20;

/// The files of one table, for threads that may block.
#[derive(Clone)]
pub(super) struct TableFiles {
    table: &'static str,
    store: Arc<dyn ObjectStore>,
    runtime: Handle,
    is_local: bool,
}

impl TableFiles {
    /// To be called inside of the runtime.
    pub(super) fn new(table: &'static str, delta: &deltalake::DeltaTable) -> Self {
        let is_local = delta.table_url().scheme() == "file";
        Self { table, store: delta.object_store(), runtime: Handle::current(), is_local }
    }

    /// Writes a file.
    pub(super) fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), Error> {
        self.wait(self.store.put(&Path::from(path), bytes.into()))
            .map(|_| ())
            .map_err(|e| Error::table("write a file of", self.table)(e.into()))
    }

    /// Opens a file.
    pub(super) fn get(&self, path: &str) -> Result<Content, Error> {
        let got = self.wait(async {
            let got = self.store.get(&Path::from(path)).await?;
            Ok(match got.payload {
                GetResultPayload::File(file, _) if got.meta.size > READ_WHOLE => Content::Local(file),
                _ => Content::Memory(got.bytes().await?),
            })
        });
        got.map_err(|e: object_store::Error| Error::table("read a file of", self.table)(e.into()))
    }

    /// A local store works on this very thread, as long as that is none of the runtime's; another one needs the runtime for its sockets.
    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        if self.is_local { futures::executor::block_on(work) } else { self.runtime.block_on(work) }
    }
}
