//! Where files are put: each whole or not at all, over what was there under its name.

use super::made::Files;
use crate::bucket_client::{BucketClient, BucketError};
use crate::config::Destination;
use crate::error::Error;
use crate::terminal::write_file;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A folder or a bucket.
#[derive(Debug)]
pub enum Place {
    /// Made where there is none.
    Folder(PathBuf),
    /// Asked over HTTP.
    Bucket(Box<BucketClient>),
}

impl Place {
    /// The one that a config names. Errors: a bucket's certificates can't be used.
    pub fn of(to: &Destination) -> Result<Self, BucketError> {
        Ok(match to {
            Destination::Folder(folder) => Self::Folder(folder.clone()),
            Destination::Bucket(config) => Self::Bucket(Box::new(BucketClient::new(config)?)),
        })
    }

    /// Puts files there, in their order. Errors: one can't be put; those before it are there.
    pub async fn put(&self, files: Files) -> Result<(), Error> {
        match self {
            Self::Folder(folder) => {
                let folder = folder.clone();
                let put = move || put_into_folder(&folder, &files);
                tokio::task::spawn_blocking(put).await.expect("files are put or the reason comes back")
            }
            Self::Bucket(client) => {
                let credentials = client.credentials()?;
                for (name, bytes) in files.files {
                    let key = client.bucket().file_key(&name);
                    client.put(&key, bytes, &credentials, "putting a file that is delivered").await?;
                }
                Ok(())
            }
        }
    }
}

fn put_into_folder(folder: &Path, files: &Files) -> Result<(), Error> {
    let failed = |doing, path: PathBuf| move |source| Error::File { doing, path, source };
    std::fs::create_dir_all(folder).map_err(failed("make the folder", folder.to_owned()))?;
    if let (true, Some((seal, _))) = (files.has_seal, files.files.last()) {
        let seal = folder.join(seal);
        match std::fs::remove_file(&seal) {
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(failed("replace", seal)(source)),
            _ => {}
        }
    }
    files.files.iter().try_for_each(|(name, bytes)| write_file(&folder.join(name), bytes))
}

/// `/srv/finance`, or `s3://finance/gpu at https://minio.example`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Bucket(client) => client.bucket().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_come_into_a_folder_that_is_made_and_take_the_place_of_those_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Folder(folder.path().join("a/b"));
        let put = async |text: &str, has_seal| {
            let file = |name: &str| (name.to_owned(), format!("{text} {name}").into_bytes());
            place.put(Files { files: vec![file("rows.csv"), file("metadata.json")], has_seal }).await
        };
        put("first", true).await.unwrap();
        put("second", true).await.unwrap();
        let all: Vec<_> = std::fs::read_dir(folder.path().join("a/b")).unwrap().collect();
        assert_eq!(all.len(), 2, "{all:?}");
        let read = |name: &str| std::fs::read_to_string(folder.path().join("a/b").join(name)).unwrap();
        assert_eq!(read("rows.csv") + &read("metadata.json"), "second rows.csvsecond metadata.json");
        // What can't be written leaves no seal that says otherwise.
        std::fs::remove_file(folder.path().join("a/b/rows.csv")).unwrap();
        std::fs::create_dir(folder.path().join("a/b/rows.csv")).unwrap();
        assert!(put("third", true).await.is_err());
        assert!(!folder.path().join("a/b/metadata.json").exists());
    }
}
