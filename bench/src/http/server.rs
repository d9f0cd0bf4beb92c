//! A release build of the `orchestrix` command as a server.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How long the server may take to start.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct HttpServer {
    child: Child,
    address: String,
    key: Option<String>,
}

impl HttpServer {
    /// Starts the command next to this program, on a free port.
    pub(crate) async fn start(url: &str) -> Result<Self> {
        Self::start_with(url, &["--no-auth"]).await
    }

    /// Starts a server with authentication, and creates a key.
    pub(crate) async fn start_with_auth(url: &str) -> Result<Self> {
        let made = Command::new(program()?)
            .args(["keys", "create", "--role", "client"])
            .env("ORCHESTRIX_DATABASE_URL", url)
            .output()?;
        ensure!(made.status.success(), "cannot create a key: {}", String::from_utf8_lossy(&made.stderr));
        let mut server = Self::start_with(url, &[]).await?;
        server.key = Some(String::from_utf8(made.stdout)?.trim().to_owned());
        Ok(server)
    }

    async fn start_with(url: &str, flags: &[&str]) -> Result<Self> {
        let program = program()?;
        let mut child = Command::new(&program)
            .args(["server", "--listen", "127.0.0.1:0"])
            .args(flags)
            .env("ORCHESTRIX_DATABASE_URL", url)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}; `cargo xtask bench` builds it", program.display()))?;
        let stderr = child.stderr.take().context("stderr is not piped")?;
        let (sender, addresses) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                match line.split_once("http://") {
                    Some((_, rest)) => {
                        let address = rest.split([' ', '/', ';']).next().unwrap_or(rest);
                        drop(sender.send(address.trim().to_owned()));
                    }
                    // Warnings belong to the output of the run.
                    None if line.contains("WARN") || line.contains("ERROR") => eprintln!("server: {line}"),
                    None => {}
                }
            }
        });
        let mut server = Self { child, address: String::new(), key: None };
        match tokio::task::spawn_blocking(move || addresses.recv_timeout(TIMEOUT)).await? {
            Ok(address) => server.address = address,
            Err(error) => bail!("the server does not start: {error}"),
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The API key for every request.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Its resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).context("memory is read from /proc, which requires Linux")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("/proc has no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }
}

fn program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("orchestrix"))
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // Its database sessions end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raises the limit of open files of this process and its children to the maximum.
pub(crate) fn allow_connections(needed: usize) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let needed = needed as u64 + 100;
    match limit.maximum {
        Some(most) if most < needed => bail!("{needed} open files are needed, but `ulimit -Hn` allows only {most}"),
        _ => Ok(()),
    }
}
