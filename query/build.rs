//! Names the build: `CARDHOUR_VERSION` is the version with the commit it was built from, `0.1.0+3f9932408a1c`, or the version alone where nobody knows one.
//!
//! The commit is that of the checkout that this crate lies in, or `CARDHOUR_COMMIT` for whoever builds without git. It is looked up again when the checkout moves to
//! another commit, not at each build; what is changed and not committed has the name of the commit below it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of a commit that tell it apart.
const COMMIT_DIGITS: usize = 12;

fn main() {
    // Once something is named, only what is named is looked at.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARDHOUR_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo says what it builds");
    let given = std::env::var("CARDHOUR_COMMIT").ok().filter(|commit| !commit.is_empty());
    match given.or_else(commit) {
        Some(commit) => println!("cargo::rustc-env=CARDHOUR_VERSION={version}+{commit}"),
        None => println!("cargo::rustc-env=CARDHOUR_VERSION={version}"),
    }
}

/// The commit of our checkout; none without git, and where the folder lies in somebody else's checkout.
fn commit() -> Option<String> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?).parent()?.canonicalize().ok()?;
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if PathBuf::from(top).canonicalize().ok()? != root {
        return None;
    }
    let branch = git(&root, &["symbolic-ref", "--quiet", "HEAD"]);
    for file in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&root, &["rev-parse", "--git-path", file]).map(|path| root.join(path));
        // A file that isn't there would count as changed at each build.
        if let Some(path) = path.filter(|path| path.is_file()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", &format!("--short={COMMIT_DIGITS}"), "HEAD"])
}

fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let answer = Command::new("git").arg("-C").arg(folder).args(words).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let text = text.trim();
    (answer.status.success() && !text.is_empty()).then(|| text.to_owned())
}
