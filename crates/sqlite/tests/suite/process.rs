//! Processes beside that of the test. Each is this test binary, started anew to run one ignored test: its body reads
//! what to do from its environment and its input, and writes a line for every answer it got.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use crate::support::LIMIT;

const TASK: &str = "ORCHESTRIX_TEST_TASK";
const FILE: &str = "ORCHESTRIX_TEST_FILE";
/// Begins every line that is meant for the test; the others are the test harness's own.
const SAID: &str = "said: ";

/// What the body of a process was started for: a task and a file. `None` when somebody ran it as a test.
pub(crate) fn assignment() -> Option<(String, PathBuf)> {
    let task = env::var(TASK).ok()?;
    Some((task, PathBuf::from(env::var_os(FILE)?)))
}

/// Writes a line to the test that started this process.
pub(crate) fn say(text: impl std::fmt::Display) {
    // One call, so that a process that is killed has said all of a line or nothing.
    println!("{SAID}{text}");
}

/// Waits for the next line from the test that started this process; `None` once it wants no more.
pub(crate) fn hear() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("a line");
    (read > 0).then(|| line.trim_end().to_owned())
}

/// Says that all is prepared and waits for the signal to begin. The process ends when the one that started it does, or
/// lets go of it.
pub(crate) fn ready() {
    // The harness has begun a line of its own.
    println!();
    say("ready");
    let go = hear();
    assert_eq!(go.as_deref(), Some("go"));
    thread::spawn(|| {
        while hear().is_some() {}
        std::process::exit(0);
    });
}

/// A process and what it says. Killed with whoever holds it.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    /// Starts `body`, the path of an ignored test.
    pub(crate) fn start(body: &str, task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(env::current_exe().unwrap()), body, task, file)
    }

    /// Starts `body` by way of another program, which gets its command line as further arguments.
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
            // A line that was cut off in the middle was not said.
            while output.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
                if let Some(said) = line.trim_end().strip_prefix(SAID)
                    && sender.send(said.to_owned()).is_err()
                {
                    break;
                }
                line.clear();
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    /// The next line; `None` when the process has ended.
    pub(crate) fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("not a word within {LIMIT:?}"),
        }
    }

    /// What it said that nobody has read yet.
    pub(crate) fn said(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// Waits for a line that must be `text`.
    pub(crate) fn expect(&self, text: &str) {
        assert_eq!(self.next().as_deref(), Some(text));
    }

    /// Writes a line to it.
    pub(crate) fn tell(&mut self, text: &str) {
        let input = self.input.as_mut().expect("a process that listens");
        writeln!(input, "{text}").expect("a process that listens");
    }

    /// Kills it with SIGKILL; answers with what it said that nobody had read yet.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.rest()
    }

    /// Lets it come to its end; answers with what it said until then.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let said = self.rest();
        let status = self.wait();
        assert!(status.success(), "{status}, having said {said:?}");
        said
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
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts processes and lets them begin together once all are ready.
pub(crate) fn start_together(body: &str, tasks: &[&str], file: &Path) -> Vec<Process> {
    let mut processes: Vec<Process> = tasks.iter().map(|task| Process::start(body, task, file)).collect();
    for process in &processes {
        process.expect("ready");
    }
    for process in &mut processes {
        process.tell("go");
    }
    processes
}
