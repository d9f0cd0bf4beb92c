//! The crates of the workspace, by directory and package name.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct Crate {
    /// The name of its directory: `postgres`.
    pub(crate) name: String,
    /// The name of its package: `orchestrix-postgres`.
    pub(crate) package: String,
    /// Whether it has a library, and so possibly doctests.
    pub(crate) is_library: bool,
}

/// The root directory of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// All members, sorted by name: those in `crates/` and those beside it.
pub(crate) fn all() -> Result<Vec<Crate>> {
    let mut found = Vec::new();
    for directory in [root(), &root().join("crates")] {
        let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            found.extend(read(&entry?.path())?);
        }
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The crate in `directory`, if there is one.
fn read(directory: &Path) -> Result<Option<Crate>> {
    let manifest = directory.join("Cargo.toml");
    if !manifest.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .with_context(|| format!("{} has no line `name = \"…\"`", manifest.display()))?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(Crate { name, package: package.to_owned(), is_library: directory.join("src/lib.rs").is_file() }))
}
