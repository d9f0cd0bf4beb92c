//! Child processes of tests. Each is this test binary, started again to run one ignored test. That test reads its task
//! from the environment and from stdin, and prints one line for every reply that it got from the store.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use crate::support::TIMEOUT;

const TASK: &str = "ORCHESTRIX_TEST_TASK";
const FILE: &str = "ORCHESTRIX_TEST_FILE";
/// The prefix of lines for the parent test. Lines without it come from the test harness.
const PREFIX: &str = "report: ";

/// The task and the file that this process was started for. `None` if it runs as an ordinary test.
pub(crate) fn assignment() -> Option<(String, PathBuf)> {
    let task = env::var(TASK).ok()?;
    Some((task, PathBuf::from(env::var_os(FILE)?)))
}

/// Prints a line for the parent test.
pub(crate) fn report(text: impl std::fmt::Display) {
    // One call, so that a killed process has printed a whole line or nothing.
    println!("{PREFIX}{text}");
}

/// Waits for the next line from the parent test. `None` once it has closed the pipe.
pub(crate) fn read_line() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("a line");
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Reports `ready` and waits for `go`. Afterwards the process exits as soon as the parent closes the pipe or ends.
pub(crate) fn ready() {
    // Ends the line that the harness has begun.
    println!();
    report("ready");
    let go = read_line();
    assert_eq!(go.as_deref(), Some("go"));
    thread::spawn(|| {
        while read_line().is_some() {}
        std::process::exit(0);
    });
}

/// A child process and its output. Dropping it kills the process.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts the ignored test `body`.
    pub(crate) fn start(body: &str, task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(env::current_exe().unwrap()), body, task, file)
    }

    /// Starts `body` through another program, which gets the command line as further arguments.
    pub(crate) fn start_by(program: &[&str], body: &str, task: &str, file: &Path) -> Self {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(env::current_exe().unwrap());
        Self::spawn(command, body, task, file)
    }

    fn spawn(mut command: Command, body: &str, task: &str, file: &Path) -> Self {
        let mut child = command
            .args(["--exact", body, "--ignored", "--nocapture"])
            .envs([(TASK, OsString::from(task)), (FILE, file.into())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            // Ignores an incomplete last line.
            while output.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
                if let Some(report) = line.trim_end().strip_prefix(PREFIX)
                    && sender.send(report.to_owned()).is_err()
                {
                    break;
                }
                line.clear();
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    /// The next line, or `None` when the process has ended.
    pub(crate) fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no output within {TIMEOUT:?}"),
        }
    }

    /// The lines that are available now.
    pub(crate) fn unread_lines(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Waits for a line that must be `text`.
    pub(crate) fn expect(&self, text: &str) {
        assert_eq!(self.next().as_deref(), Some(text));
    }

    /// Writes a line to it.
    pub(crate) fn send_line(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open pipe");
        writeln!(input, "{text}").expect("an open pipe");
    }

    /// Kills it with SIGKILL and returns its remaining lines.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.rest()
    }

    /// Waits until it ends successfully and returns its remaining lines.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let lines = self.rest();
        let status = self.wait();
        assert!(status.success(), "{status}, after {lines:?}");
        lines
    }

    fn rest(&self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }

    fn wait(&mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts processes and sends `go` to all of them once all are ready.
pub(crate) fn start_concurrently(body: &str, tasks: &[&str], file: &Path) -> Vec<Process> {
    let mut processes: Vec<Process> = tasks.iter().map(|task| Process::start(body, task, file)).collect();
    for process in &processes {
        process.expect("ready");
    }
    for process in &mut processes {
        process.send_line("go");
    }
    processes
}
