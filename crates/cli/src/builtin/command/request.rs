//! The payload of `orchestrix.command`, and which programs may be run.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use orchestrix_worker::{JobError, JobResult};
use rustix::fs::{Access, access};
use serde::Deserialize;

use crate::builtin::{BuiltinOptions, payload};

/// What to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) program: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default, deserialize_with = "payload::texts")]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) stdin: Option<String>,
}

/// What a worker may run, and how long it lets a program end.
pub(crate) struct Rules {
    programs: BTreeSet<String>,
    pub(super) kill_after: Duration,
}

impl Rules {
    pub(crate) fn new(options: &BuiltinOptions) -> Self {
        Self { programs: options.commands.clone(), kill_after: options.kill_after }
    }

    /// Checks that this may be run; where the program is.
    pub(super) fn check(&self, request: &Request) -> JobResult<PathBuf> {
        let Request { program, args, env, stdin: _ } = request;
        if !self.programs.contains(program) {
            let text = format!("this worker does not run {program:?}: start it with --allow-command {program}");
            return Err(JobError::fatal(text));
        }
        for name in env.keys() {
            let why = match name.as_str() {
                name if name.starts_with("ORCHESTRIX_") => "belongs to the worker",
                // With them the program that is allowed is whatever somebody makes of it.
                name if name.starts_with("LD_") || name.starts_with("DYLD_") => "decides which code is loaded",
                name if name.is_empty() || name.contains(['=', '\0']) => "is not the name of a variable",
                _ => continue,
            };
            return Err(JobError::fatal(format!("the payload does not fit at `env`: `{name}` {why}")));
        }
        if args.iter().chain(env.values()).any(|text| text.contains('\0')) {
            return Err(JobError::fatal("the payload does not fit: `args` and `env` cannot hold a NUL"));
        }
        // By the worker's own PATH: that of the payload would choose another program of the same name.
        find(program, &env::var_os("PATH").unwrap_or_default())
            .ok_or_else(|| JobError::fatal(format!("there is no program {program:?} here")))
    }
}

fn find(program: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let runs = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| runs(file));
    }
    env::split_paths(path).map(|folder| folder.join(program)).find(|file| runs(file))
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Json;

    use super::*;

    fn check(payload: &str) -> Result<PathBuf, String> {
        let rules = Rules { programs: ["sh".into(), "no-such-program".into()].into(), kill_after: Duration::ZERO };
        payload::read(&Json::trusted(payload)).and_then(|request| rules.check(&request)).map_err(|error| {
            assert!(error.is_fatal());
            error.to_string()
        })
    }

    #[test]
    fn only_a_program_that_is_allowed_by_this_very_name_is_run() {
        assert!(check(r#"{"program": "sh"}"#).unwrap().is_absolute());
        for program in ["/bin/sh", "./sh", "sh ", "SH", "", "bash"] {
            let text = check(&format!(r#"{{"program": "{program}"}}"#)).unwrap_err();
            assert!(text.contains(&format!("--allow-command {program}")), "{text}");
        }
        assert!(check(r#"{"program": "no-such-program"}"#).unwrap_err().contains("no program"));
    }

    #[test]
    fn a_payload_cannot_make_another_program_of_it() {
        let path = check(r#"{"program": "sh", "env": {"PATH": "/nowhere"}}"#).unwrap();
        assert!(!path.starts_with("/nowhere"));
        for name in ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "ORCHESTRIX_JOB_ID", "", "A=B"] {
            let text = check(&format!(r#"{{"program": "sh", "env": {{"{name}": "hunter2"}}}}"#)).unwrap_err();
            assert!(text.contains(&format!("`{name}`")) && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_field_that_does_not_fit_is_named() {
        for (payload, text) in [
            ("{}", "missing field `program`"),
            (r#"{"program": "sh", "args": "-c"}"#, "`args`"),
            (r#"{"program": "sh", "args": ["-c", 1]}"#, "`args[1]`"),
            (r#"{"program": "sh", "args": ["\u0000"]}"#, "`args`"),
            (r#"{"program": "sh", "arguments": []}"#, "unknown field `arguments`"),
        ] {
            let said = check(payload).unwrap_err();
            assert!(said.contains(text), "{said}");
        }
    }
}
