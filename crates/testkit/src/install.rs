//! Installs missing servers on a Debian machine.
//!
//! Only the packages: no system service is created or started. The servers of the tests are started by this crate
//! alone.

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::server_user::is_root;
use crate::{Error, PG_BIN, PostgresInstallation, pgbouncer};

/// A server that the tests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerPackage {
    /// PostgreSQL.
    Postgres,
    /// PgBouncer.
    PgBouncer,
}

/// The result of [`ensure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallOutcome {
    /// The package was already installed.
    Present,
    /// The package was missing and is now installed.
    Installed,
}

/// Ensures that a server is installed; installs its Debian package as root if it is missing.
///
/// `before_install` is called before the installation starts, which takes a while and prints the output of `apt-get`.
pub fn ensure(package: ServerPackage, before_install: impl FnOnce()) -> Result<InstallOutcome, Error> {
    match package {
        ServerPackage::Postgres => ensure_postgres(before_install),
        ServerPackage::PgBouncer => ensure_pgbouncer(before_install),
    }
}

/// Ensures that a program is installed whose Debian package has the same name and starts no service. `command` is the
/// advice if it cannot be installed here.
pub fn ensure_program(
    program: &'static str,
    command: &'static str,
    before_install: impl FnOnce(),
) -> Result<InstallOutcome, Error> {
    let runs = || Command::new(program).arg("--version").stdin(Stdio::null()).output();
    if runs().is_ok() {
        return Ok(InstallOutcome::Present);
    }
    check_apt(program, command)?;
    let _lock = lock_installation()?;
    // Another process may have installed it meanwhile.
    if runs().is_ok() {
        return Ok(InstallOutcome::Present);
    }
    before_install();
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", program])?;
    runs().map(|_| InstallOutcome::Installed).map_err(Error::run(program))
}

fn ensure_postgres(before_install: impl FnOnce()) -> Result<InstallOutcome, Error> {
    match PostgresInstallation::find() {
        Ok(_) => return Ok(InstallOutcome::Present),
        // `PG_BIN` was set: another installation would not be used.
        Err(error) if env::var_os(PG_BIN).is_some() => return Err(error),
        Err(Error::PostgresMissing) => {}
        // A Debian release has one version of PostgreSQL, so apt has none that is newer.
        Err(error) => return Err(error),
    }
    check_apt("postgresql", "apt-get update && apt-get install -y postgresql")?;
    let _lock = lock_installation()?;
    if PostgresInstallation::find().is_ok() {
        return Ok(InstallOutcome::Present);
    }
    before_install();
    apt(&["update"])?;
    without_creating_cluster(|| apt(&["install", "-y", "--no-install-recommends", "postgresql"]))?;
    PostgresInstallation::find().map(|_| InstallOutcome::Installed)
}

fn ensure_pgbouncer(before_install: impl FnOnce()) -> Result<InstallOutcome, Error> {
    if pgbouncer::find().is_ok() {
        return Ok(InstallOutcome::Present);
    }
    check_apt("pgbouncer", "apt-get update && apt-get install -y pgbouncer")?;
    let _lock = lock_installation()?;
    if pgbouncer::find().is_ok() {
        return Ok(InstallOutcome::Present);
    }
    before_install();
    apt(&["update"])?;
    without_starting_services(|| apt(&["install", "-y", "--no-install-recommends", "pgbouncer"]))?;
    pgbouncer::find().map(|_| InstallOutcome::Installed)
}

/// Installs a package that starts no service.
pub(crate) fn install_package(package: &'static str, command: &'static str) -> Result<(), Error> {
    check_apt(package, command)?;
    let _lock = lock_installation()?;
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", package])
}

/// Takes the installation lock, released when dropped. Tests are separate processes, and two concurrent installations
/// of one package fail in spite of apt's own locks.
fn lock_installation() -> Result<File, Error> {
    let path = env::temp_dir().join("orchestrix-install.lock");
    let file = File::create(&path).map_err(Error::files(&path))?;
    file.lock().map_err(Error::files(&path))?;
    Ok(file)
}

/// Runs an installation during which packages start no services, by means of `policy-rc.d`. An existing one, as in
/// containers, is left in force.
fn without_starting_services(install: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let rule = Path::new("/usr/sbin/policy-rc.d");
    if rule.exists() {
        return install();
    }
    // 101: action not allowed.
    fs::write(rule, "#!/bin/sh\nexit 101\n").map_err(Error::files(rule))?;
    fs::set_permissions(rule, Permissions::from_mode(0o755)).map_err(Error::files(rule))?;
    let installed = install();
    fs::remove_file(rule).map_err(Error::files(rule))?;
    installed
}

/// Runs an installation during which postgresql-common creates no cluster.
///
/// By default the package creates a cluster `main` and starts it on port 5432. Its own settings file must not change,
/// or later upgrades would ask about it; so this adds a file to the included directory, and removes it afterwards.
fn without_creating_cluster(install: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
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
        // Wait for other apt processes, such as a nightly update, instead of failing.
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .map_err(Error::run(&program))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Failed { program, status, output: "see its output above".into() })
}
