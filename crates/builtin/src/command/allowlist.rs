//! The payload of `orchestrix.command`, and the check that its program is allowed.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use orchestrix_worker::{JobError, JobResult};
use rustix::fs::{Access, access};
use serde::Deserialize;

use crate::{BuiltinOptions, payload};

/// The program to run, with its arguments, variables and input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandRequest {
    pub(super) program: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default, deserialize_with = "payload::string_map")]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) stdin: Option<String>,
}

/// The programs that a worker may run, and how long a program may take to exit after SIGTERM.
pub(crate) struct Allowlist {
    programs: BTreeSet<String>,
    pub(super) kill_after: Duration,
}

impl Allowlist {
    pub(crate) fn new(options: &BuiltinOptions) -> Self {
        Self { programs: options.allowed_commands.clone(), kill_after: options.kill_after }
    }

    /// Checks that the request is allowed, and returns the path of its program.
    pub(super) fn find_program(&self, request: &CommandRequest) -> JobResult<PathBuf> {
        let CommandRequest { program, args, env, stdin: _ } = request;
        if !self.programs.contains(program) {
            let text = format!(
                "this worker does not allow the program {program:?}; \
                 to allow it, start the worker with --allow-command {program} \
                 (BuiltinOptions::allowed_commands)"
            );
            return Err(JobError::fatal(text));
        }
        for name in env.keys() {
            let why = match name.as_str() {
                name if name.starts_with("ORCHESTRIX_") => "is set by the worker",
                // They could make an allowed program run other code.
                name if name.starts_with("LD_") || name.starts_with("DYLD_") => {
                    "is not allowed: it changes which code the program loads"
                }
                name if name.is_empty() || name.contains(['=', '\0']) => "is not a valid variable name",
                _ => continue,
            };
            return Err(JobError::fatal(format!("invalid payload at `env`: `{name}` {why}")));
        }
        if args.iter().chain(env.values()).any(|text| text.contains('\0')) {
            return Err(JobError::fatal("invalid payload: `args` and `env` must not contain NUL"));
        }
        // By the worker's own PATH: the payload's PATH could choose another program of the same name.
        find_executable(program, &env::var_os("PATH").unwrap_or_default())
            .ok_or_else(|| JobError::fatal(format!("there is no program {program:?} on this worker's machine")))
    }
}

fn find_executable(program: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let is_executable = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| is_executable(file));
    }
    env::split_paths(path).map(|directory| directory.join(program)).find(|file| is_executable(file))
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Json;

    use super::*;

    fn check(payload: &str) -> Result<PathBuf, String> {
        let allowlist =
            Allowlist { programs: ["sh".into(), "no-such-program".into()].into(), kill_after: Duration::ZERO };
        payload::read(&Json::trusted(payload)).and_then(|request| allowlist.find_program(&request)).map_err(|error| {
            assert!(error.is_fatal());
            error.to_string()
        })
    }

    #[test]
    fn only_an_exactly_matching_program_name_is_allowed() {
        assert!(check(r#"{"program": "sh"}"#).unwrap().is_absolute());
        for program in ["/bin/sh", "./sh", "sh ", "SH", "", "bash"] {
            let text = check(&format!(r#"{{"program": "{program}"}}"#)).unwrap_err();
            assert!(text.contains(&format!("--allow-command {program}")), "{text}");
        }
        assert!(check(r#"{"program": "no-such-program"}"#).unwrap_err().contains("no program"));
    }

    #[test]
    fn a_payload_cannot_substitute_another_program() {
        let path = check(r#"{"program": "sh", "env": {"PATH": "/nowhere"}}"#).unwrap();
        assert!(!path.starts_with("/nowhere"));
        for name in ["LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "ORCHESTRIX_JOB_ID", "", "A=B"] {
            let text = check(&format!(r#"{{"program": "sh", "env": {{"{name}": "hunter2"}}}}"#)).unwrap_err();
            assert!(text.contains(&format!("`{name}`")) && !text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn errors_name_the_invalid_field() {
        for (payload, text) in [
            ("{}", "missing field `program`"),
            (r#"{"program": "sh", "args": "-c"}"#, "`args`"),
            (r#"{"program": "sh", "args": ["-c", 1]}"#, "`args[1]`"),
            (r#"{"program": "sh", "args": ["\u0000"]}"#, "`args`"),
            (r#"{"program": "sh", "arguments": []}"#, "unknown field `arguments`"),
        ] {
            let error = check(payload).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
