//! Schemathesis, a property-based tester of HTTP APIs with an OpenAPI description.
//!
//! It is installed into a Python environment under `target`: nothing else on the machine changes, and `cargo clean`
//! removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::install::{InstallOutcome, install_package};

/// The pinned versions. A copy in the environment marks a finished installation.
const PARTS: &str = include_str!("schemathesis.txt");

/// The path of the program that [`ensure_schemathesis`] installed.
pub fn schemathesis() -> Result<PathBuf, Error> {
    let home = home();
    match fs::read_to_string(home.join("parts.txt")) {
        Ok(parts) if parts == PARTS => Ok(home.join("bin/st")),
        _ => Err(Error::SchemathesisMissing),
    }
}

/// Installs it from PyPI if it is missing or has other versions.
///
/// `before_install` is called before the installation starts, which takes a while.
pub fn ensure_schemathesis(before_install: impl FnOnce()) -> Result<InstallOutcome, Error> {
    if schemathesis().is_ok() {
        return Ok(InstallOutcome::Present);
    }
    before_install();
    let home = home();
    if home.exists() {
        fs::remove_dir_all(&home).map_err(Error::files(&home))?;
    }
    make_environment(&home)?;
    let wanted = home.join("wanted.txt");
    fs::write(&wanted, PARTS).map_err(Error::files(&wanted))?;
    // Wheels only: building from source would need compilers.
    let options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];
    run(Command::new(home.join("bin/python")).args(["-m", "pip", "install"]).args(options).arg("-r").arg(&wanted))?;
    fs::rename(&wanted, home.join("parts.txt")).map_err(Error::files(&wanted))?;
    Ok(InstallOutcome::Installed)
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis")
}

// Debian's Python lacks the venv module until its package is installed.
fn make_environment(home: &Path) -> Result<(), Error> {
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(home));
    make().or_else(|_| {
        install_package("python3-venv", "apt-get update && apt-get install -y python3-venv")?;
        make()
    })
}

fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_owned();
    let output = command.stdin(Stdio::null()).output().map_err(Error::run(&program))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::failed(program.as_ref(), &output)),
    }
}
