//! Schemathesis, which asks a server all that its description allows, and more.
//!
//! It lives in a Python environment of its own under `target`: nothing on the machine is changed, and `cargo clean` removes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::install::{Ensured, install_package};

/// The versions of all its parts; a copy of it in the environment says that the installation was finished.
const PARTS: &str = include_str!("schemathesis.txt");

/// Its program, as [`ensure_schemathesis`] left it.
pub fn schemathesis() -> Result<PathBuf, Error> {
    let home = home();
    match fs::read_to_string(home.join("parts.txt")) {
        Ok(parts) if parts == PARTS => Ok(home.join("bin/st")),
        _ => Err(Error::SchemathesisMissing),
    }
}

/// Makes sure of it, installing it from PyPI if it is missing or of other versions.
///
/// `before_install` is called before an installation starts, since that takes a while.
pub fn ensure_schemathesis(before_install: impl FnOnce()) -> Result<Ensured, Error> {
    if schemathesis().is_ok() {
        return Ok(Ensured::Present);
    }
    before_install();
    let home = home();
    if home.exists() {
        fs::remove_dir_all(&home).map_err(Error::files(&home))?;
    }
    make_environment(&home)?;
    let wanted = home.join("wanted.txt");
    fs::write(&wanted, PARTS).map_err(Error::files(&wanted))?;
    // Ready-made parts only: building one would need compilers of who knows which kind.
    let options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];
    run(Command::new(home.join("bin/python")).args(["-m", "pip", "install"]).args(options).arg("-r").arg(&wanted))?;
    fs::rename(&wanted, home.join("parts.txt")).map_err(Error::files(&wanted))?;
    Ok(Ensured::Installed)
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis")
}

// Debian's Python comes without what makes environments.
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
