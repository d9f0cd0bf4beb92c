//! Putting a missing server on a Debian machine.
//!
//! Only the package, never a system service: the servers that tests use are started by this crate alone.

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::account::is_root;
use crate::{Error, PG_BIN, PostgresInstallation, pgbouncer};

/// A server that the tests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// PgBouncer.
    PgBouncer,
}

/// What [`ensure`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ensured {
    /// The server was there.
    Present,
    /// The server was missing and is there now.
    Installed,
}

/// Makes sure that `server` is on this machine, installing its Debian package if it must and can.
///
/// `before_install` is called before an installation starts, since that takes a while and prints what `apt-get` prints.
pub fn ensure(server: Server, before_install: impl FnOnce()) -> Result<Ensured, Error> {
    match server {
        Server::Postgres => ensure_postgres(before_install),
        Server::PgBouncer => ensure_pgbouncer(before_install),
    }
}

/// Makes sure of a program that starts no service and comes in a Debian package of its own name. `command` is what a
/// person would have to run where this cannot.
pub fn ensure_program(
    program: &'static str,
    command: &'static str,
    before_install: impl FnOnce(),
) -> Result<Ensured, Error> {
    let runs = || Command::new(program).arg("--version").stdin(Stdio::null()).output();
    if runs().is_ok() {
        return Ok(Ensured::Present);
    }
    check_apt(program, command)?;
    let _alone = alone()?;
    // Somebody else may have installed it meanwhile.
    if runs().is_ok() {
        return Ok(Ensured::Present);
    }
    before_install();
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", program])?;
    runs().map(|_| Ensured::Installed).map_err(Error::run(program))
}

fn ensure_postgres(before_install: impl FnOnce()) -> Result<Ensured, Error> {
    match PostgresInstallation::find() {
        Ok(_) => return Ok(Ensured::Present),
        // Somebody chose a directory: another installation would not be used.
        Err(error) if env::var_os(PG_BIN).is_some() => return Err(error),
        Err(Error::PostgresMissing) => {}
        // Debian holds one version per release, so that apt has nothing newer to offer.
        Err(error) => return Err(error),
    }
    check_apt("postgresql", "apt-get update && apt-get install -y postgresql")?;
    let _alone = alone()?;
    if PostgresInstallation::find().is_ok() {
        return Ok(Ensured::Present);
    }
    before_install();
    apt(&["update"])?;
    without_system_cluster(|| apt(&["install", "-y", "--no-install-recommends", "postgresql"]))?;
    PostgresInstallation::find().map(|_| Ensured::Installed)
}

fn ensure_pgbouncer(before_install: impl FnOnce()) -> Result<Ensured, Error> {
    if pgbouncer::find().is_ok() {
        return Ok(Ensured::Present);
    }
    check_apt("pgbouncer", "apt-get update && apt-get install -y pgbouncer")?;
    let _alone = alone()?;
    if pgbouncer::find().is_ok() {
        return Ok(Ensured::Present);
    }
    before_install();
    apt(&["update"])?;
    without_services(|| apt(&["install", "-y", "--no-install-recommends", "pgbouncer"]))?;
    pgbouncer::find().map(|_| Ensured::Installed)
}

/// Installs a package that brings no service.
pub(crate) fn install_package(package: &'static str, command: &'static str) -> Result<(), Error> {
    check_apt(package, command)?;
    let _alone = alone()?;
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", package])
}

/// Waits until no other process of ours installs anything, and keeps others from it until it is dropped: tests are processes of their own, and
/// two that begin to install the same package at once spoil it for each other, for all that apt has locks.
fn alone() -> Result<File, Error> {
    let path = env::temp_dir().join("orchestrix-install.lock");
    let file = File::create(&path).map_err(Error::files(&path))?;
    file.lock().map_err(Error::files(&path))?;
    Ok(file)
}

/// Runs an installation during which packages start no services, by the rule file that Debian's tools ask. Where a
/// machine has one of its own, as containers do, that one decides.
fn without_services(install: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let rule = Path::new("/usr/sbin/policy-rc.d");
    if rule.exists() {
        return install();
    }
    // 101 says that the action is not allowed.
    fs::write(rule, "#!/bin/sh\nexit 101\n").map_err(Error::files(rule))?;
    fs::set_permissions(rule, Permissions::from_mode(0o755)).map_err(Error::files(rule))?;
    let installed = install();
    fs::remove_file(rule).map_err(Error::files(rule))?;
    installed
}

/// Runs an installation during which Debian's postgresql-common creates no cluster, so that there is none to start.
///
/// Left alone, the package creates a cluster `main` and starts it on port 5432. Its settings file belongs to the
/// package, which would ask about a changed one; the directory that this file includes is for additions. Ours is there
/// only for the installation: what the machine's owner installs later is theirs to decide.
fn without_system_cluster(install: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let directory = Path::new("/etc/postgresql-common/createcluster.d");
    let file = directory.join("orchestrix-testkit.conf");
    fs::create_dir_all(directory).map_err(Error::files(directory))?;
    fs::write(&file, "create_main_cluster = false\n").map_err(Error::files(&file))?;
    let installed = install();
    fs::remove_file(&file).map_err(Error::files(&file))?;
    installed
}

fn check_apt(package: &'static str, command: &'static str) -> Result<(), Error> {
    let reason = if !is_root()? {
        "this process is not root"
    } else if Command::new("apt-get").arg("--version").output().is_err() {
        "there is no apt-get"
    } else {
        return Ok(());
    };
    Err(Error::CannotInstall { package, reason, command })
}

fn apt(arguments: &[&str]) -> Result<(), Error> {
    let program = format!("apt-get {}", arguments.join(" "));
    let status = Command::new("apt-get")
        // Another apt on the machine, such as a nightly update, is waited for rather than a failure.
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .map_err(Error::run(&program))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed { program, status, output: "its own output is above".into() })
}
