//! The crates of the workspace, by the names that people call them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct Crate {
    /// Its folder's name: `postgres`.
    pub(crate) name: String,
    /// Its package's name: `orchestrix-postgres`.
    pub(crate) package: String,
    /// Whether it has a library, and so perhaps doctests.
    pub(crate) is_library: bool,
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// All members, by name: those in `crates/` and those beside it.
pub(crate) fn all() -> Result<Vec<Crate>> {
    let mut found = Vec::new();
    for folder in [root(), &root().join("crates")] {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            found.extend(read(&entry?.path())?);
        }
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The crate in `folder`, if there is one.
fn read(folder: &Path) -> Result<Option<Crate>> {
    let manifest = folder.join("Cargo.toml");
    if !manifest.is_file() {
        return Ok(None);
    }
    let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let package = text
        .lines()
        .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .with_context(|| format!("{} has no line `name = \"…\"`", manifest.display()))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(Crate { name, package: package.to_owned(), is_library: folder.join("src/lib.rs").is_file() }))
}
