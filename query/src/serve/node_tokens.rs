//! Tokens of nodes: each lets one node deliver what it spooled, and nothing else.
//!
//! Kept beside the ledger in `node-tokens`, a line a token: the node's name, a tab, and the BLAKE3 hash of the token, so that who reads the file has
//! no token. A node may have several, for a change without a gap. The file is read at each delivery: a token that is taken out
//! of it counts no more.

use super::token::{random_hex, same};
use crate::error::Error;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file's name in the ledger's folder.
pub const FILE: &str = "node-tokens";

/// The longest name a node may have. Unit: bytes.
const LONGEST_NODE: usize = 253;

/// The tokens of one ledger.
#[derive(Clone, Debug)]
pub struct NodeTokens {
    path: PathBuf,
}

impl NodeTokens {
    /// Those of the ledger in a folder.
    pub fn of(folder: &Path) -> Self {
        Self { path: folder.join(FILE) }
    }

    /// Makes a token for a node, and gives it: it is shown once and kept nowhere. Errors: a name that no node has, a file that can't be
    /// written.
    pub fn make(&self, node: &str) -> Result<String, Error> {
        check_node(node)?;
        let token = random_hex::<32>()?;
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)
            .map_err(|source| Error::File { doing: "write", path: self.path.clone(), source })?;
        // One write of one line, so that two commands at once don't mix theirs.
        file.write_all(format!("{node}\t{}\n", hash(&token)).as_bytes()).map_err(|source| Error::File {
            doing: "write",
            path: self.path.clone(),
            source,
        })?;
        Ok(token)
    }

    /// Takes back every token of a node; how many there were. Errors: the file can't be read or written.
    pub fn revoke(&self, node: &str) -> Result<usize, Error> {
        let lines = self.lines()?;
        let (gone, kept): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(name, _)| name == node);
        if gone.is_empty() {
            return Ok(0);
        }
        let text: String = kept.iter().map(|(name, hash)| format!("{name}\t{hash}\n")).collect();
        let new = self.path.with_extension("new");
        let failed = |source| Error::File { doing: "write", path: new.clone(), source };
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, &self.path).map_err(failed)?;
        Ok(gone.len())
    }

    /// The nodes that have one, each once, by name. Errors: the file can't be read.
    pub fn nodes(&self) -> Result<Vec<String>, Error> {
        let mut nodes: Vec<String> = self.lines()?.into_iter().map(|(node, _)| node).collect();
        nodes.sort();
        nodes.dedup();
        Ok(nodes)
    }

    /// Whether a token is one of a node's. Errors: the file can't be read.
    pub fn is_of(&self, token: &str, node: &str) -> Result<bool, Error> {
        let hash = hash(token);
        Ok(self.lines()?.iter().any(|(name, known)| name == node && same(known, &hash)))
    }

    fn lines(&self) -> Result<Vec<(String, String)>, Error> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::File { doing: "read", path: self.path.clone(), source }),
        };
        let pair = |line: &str| line.split_once('\t').map(|(node, hash)| (node.to_owned(), hash.to_owned()));
        Ok(text.lines().filter_map(pair).collect())
    }
}

fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

/// Whether a name is one that a node can have: what host names are made of.
pub fn check_node(node: &str) -> Result<(), Error> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if node.is_empty() || node.len() > LONGEST_NODE || node.starts_with('.') || !node.bytes().all(is_name) {
        return Err(Error::NoNode(node.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_of_its_node_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = NodeTokens::of(folder.path());
        assert!(!tokens.is_of("anything", "gpu01").unwrap());
        let (first, second, other) =
            (tokens.make("gpu01").unwrap(), tokens.make("gpu01").unwrap(), tokens.make("gpu02").unwrap());
        for token in [&first, &second] {
            assert!(tokens.is_of(token, "gpu01").unwrap());
            assert!(!tokens.is_of(token, "gpu02").unwrap());
        }
        assert_eq!(tokens.nodes().unwrap(), ["gpu01", "gpu02"]);
        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(&path).unwrap().contains(&first), "the file has no token");
        assert_eq!(tokens.revoke("gpu01").unwrap(), 2);
        assert!(!tokens.is_of(&first, "gpu01").unwrap() && tokens.is_of(&other, "gpu02").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_name_that_could_be_a_path_is_no_nodes() {
        for odd in ["", "..", ".hidden", "a/b", "a\tb", "a\nb", "ä", &"x".repeat(254)] {
            assert!(matches!(check_node(odd), Err(Error::NoNode(_))), "{odd:?}");
        }
        assert!(check_node("gpu-01.lab_2.example").is_ok());
    }
}
