//! SQL through `psql`, for setup and assertions.

use std::process::{Command, Stdio};

use crate::{Error, PostgresInstallation};

/// Runs SQL on the database at `url` and returns the rows as text: fields joined by `|`, rows by line breaks.
///
/// Several statements form one transaction, as in any simple query.
pub fn psql(url: &str, sql: &str) -> Result<String, Error> {
    let program = PostgresInstallation::find()?.program("psql");
    let output = Command::new(&program)
        // No `.psqlrc`, no borders, no headings; stop at the first error.
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
        .stdin(Stdio::null())
        .output()
        .map_err(Error::run(&program))?;
    if !output.status.success() {
        return Err(Error::failed(&program, &output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
