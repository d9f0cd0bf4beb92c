//! Errors as the user sees them: the message, the advice, and the exit code. The only place that knows exit codes.

use std::io::{self, Write};

use orchestrix_doctor::ConnectFailure;
use orchestrix_store::StoreError;
use thiserror::Error;

use crate::{
    api::{ApiError, Rejection},
    database::PGBOUNCER_PARAM,
    logs,
};

/// The exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitStatus(u8);

impl ExitStatus {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const FAILED: Self = Self(1);
    const USAGE: Self = Self(2);
    const NOT_FOUND: Self = Self(3);
    const CONFLICT: Self = Self(4);
    pub(crate) const UNREACHABLE: Self = Self(5);

    pub(crate) const fn code(self) -> u8 {
        self.0
    }
}

/// An error that the command line itself raises.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The command failed.
    #[error("{0}")]
    Failed(String),
    /// An item does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The state of an item does not allow the action.
    #[error("{0}")]
    Conflict(String),
    /// The database or an address is not available.
    #[error("{0}")]
    Unreachable(String),
}

/// Prints an error with its advice to standard error, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitStatus {
    if is_broken_pipe(error) {
        // The reader of our output, such as `head`, has closed it.
        return ExitStatus::SUCCESS;
    }
    let mut text = format!("error: {}\n", message(error));
    for advice in advice(error) {
        text += &format!("  {advice}\n");
    }
    print_stderr(&text);
    exit_status(error)
}

/// Prints a message to standard error, in the format of the log. Ignores a closed standard error.
pub(crate) fn print_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(logs::format_message(text).as_bytes());
}

fn exit_status(error: &anyhow::Error) -> ExitStatus {
    match error.downcast_ref::<CliError>() {
        Some(CliError::Usage(_)) => return ExitStatus::USAGE,
        Some(CliError::Failed(_)) => return ExitStatus::FAILED,
        Some(CliError::NotFound(_)) => return ExitStatus::NOT_FOUND,
        Some(CliError::Conflict(_)) => return ExitStatus::CONFLICT,
        Some(CliError::Unreachable(_)) => return ExitStatus::UNREACHABLE,
        None => {}
    }
    match error.downcast_ref::<ApiError>() {
        Some(ApiError::Rejected(rejection)) => return rejection_status(rejection),
        Some(ApiError::Unreachable { .. } | ApiError::NoResponse { .. }) => return ExitStatus::UNREACHABLE,
        Some(ApiError::InvalidResponse { .. }) => return ExitStatus::FAILED,
        None => {}
    }
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::Invalid(_)) => ExitStatus::USAGE,
        Some(StoreError::Unavailable(_)) => ExitStatus::UNREACHABLE,
        _ => ExitStatus::FAILED,
    }
}

fn rejection_status(rejection: &Rejection) -> ExitStatus {
    match (rejection.status, rejection.problem.code.as_str()) {
        (_, "idempotency_key_reused") => ExitStatus::CONFLICT,
        (400 | 413 | 415 | 422, _) => ExitStatus::USAGE,
        // A 404 without a problem code is not from the API.
        (404, code) if !code.is_empty() => ExitStatus::NOT_FOUND,
        (409, _) => ExitStatus::CONFLICT,
        (429 | 502..=504, _) => ExitStatus::UNREACHABLE,
        _ => ExitStatus::FAILED,
    }
}

fn message(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        parts.push(cause.to_string());
        // Their messages include those of their sources.
        if cause.is::<StoreError>() || cause.is::<ApiError>() {
            break;
        }
    }
    parts.join(": ")
}

/// What to do about an error, one line each.
fn advice(error: &anyhow::Error) -> Vec<String> {
    let database =
        || "check that the database is running and that --database is right; --connect-timeout waits longer".to_owned();
    match (error.downcast_ref::<ApiError>(), error.downcast_ref::<StoreError>()) {
        (Some(ApiError::Rejected(rejection)), _) => {
            let unavailable = matches!(rejection.status, 502..=504);
            let uncertainty = rejection.uncertainty.filter(|_| unavailable).map(str::to_owned);
            let advice =
                if unavailable && !rejection.is_remote { Some(database()) } else { rejection_advice(rejection) };
            uncertainty.into_iter().chain(advice).collect()
        }
        (Some(ApiError::Unreachable { error, .. }), _) => {
            let advice = "check that the server is running and that --server is right; --connect-timeout waits longer";
            vec![ConnectFailure::from_error(error).map_or(advice, ConnectFailure::advice).into()]
        }
        (Some(ApiError::NoResponse { uncertainty, error, .. }), _) => {
            let failure = ConnectFailure::from_error(error).map(ConnectFailure::advice);
            failure.into_iter().chain([*uncertainty]).map(str::to_owned).collect()
        }
        (_, Some(StoreError::Unavailable(_))) => vec![database()],
        // The error of a pooler in transaction mode for session settings.
        (_, Some(error)) if error.to_string().contains("unsupported startup parameter") => {
            vec![format!(
                "the connection goes through a pooler in transaction mode: append {PGBOUNCER_PARAM} to --database"
            )]
        }
        _ => Vec::new(),
    }
}

fn rejection_advice(rejection: &Rejection) -> Option<String> {
    let text = match (rejection.status, rejection.problem.code.as_str()) {
        (_, "job_not_found") => {
            "`orchestrix jobs list` shows the existing jobs; finished jobs are deleted when their retention ends"
        }
        (_, "schedule_not_found") => "`orchestrix schedules list` shows the existing schedules",
        (_, "idempotency_key_reused") => {
            let advice = "use another --idempotency-key";
            return Some(match rejection.problem.job_id {
                Some(existing) => format!("{advice}, or show the existing job: orchestrix jobs get {existing}"),
                None => advice.into(),
            });
        }
        (401, _) if rejection.has_key => {
            "the server rejects this key: it is unknown, expired or revoked; \
             set another key with --api-key or ORCHESTRIX_API_KEY"
        }
        (401, _) => "the server requires a key: set --api-key or ORCHESTRIX_API_KEY",
        (403, _) => return forbidden_advice(rejection),
        (404, "") => "check that --server is the URL of an Orchestrix server, including its path prefix if it has one",
        (429, _) => {
            return Some(match rejection.retry_after {
                Some(wait) => format!("retry in {} s, or raise --connect-timeout to wait for it", wait.as_secs()),
                None => "retry later".into(),
            });
        }
        (502..=504, _) => "the server is running but unavailable: retry later, and see the server's log",
        _ => return None,
    };
    Some(text.into())
}

// All 403 responses have the same code: only the detail distinguishes the tenant from the role.
fn forbidden_advice(rejection: &Rejection) -> Option<String> {
    let says = |phrase: &str| rejection.problem.detail.contains(phrase);
    match () {
        () if says("bound to a tenant") => Some("use a key that is not bound to a tenant".into()),
        () if says("bound to another tenant") => {
            Some("leave out --tenant, use the key's own tenant, or use a key that is not bound to a tenant".into())
        }
        () if rejection.has_key => Some(format!("use a key whose role is {}", rejection.required_role)),
        // Not about keys: the detail says what the server requires.
        () => None,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orchestrix_client::http::ProblemBody;

    use super::*;

    fn error(status: u16, code: &str) -> anyhow::Error {
        let problem = ProblemBody { code: code.into(), detail: "d".into(), ..ProblemBody::default() };
        ApiError::from(rejection(status, problem)).into()
    }

    fn rejection(status: u16, problem: ProblemBody) -> Rejection {
        Rejection {
            status,
            problem,
            is_remote: true,
            has_key: true,
            required_role: "operator",
            retry_after: None,
            uncertainty: Some("may have been made"),
        }
    }

    #[test]
    fn every_rejection_has_its_exit_code() {
        for (status, code, expected) in [
            (404, "job_not_found", 3),
            (404, "schedule_not_found", 3),
            (404, "of_tomorrow", 3),
            (404, "", 1),
            (409, "job_finished", 4),
            (422, "idempotency_key_reused", 4),
            (422, "validation_failed", 2),
            (400, "malformed_request", 2),
            (413, "payload_too_large", 2),
            (401, "unauthenticated", 1),
            (403, "forbidden", 1),
            (429, "rate_limited", 5),
            (503, "unavailable", 5),
            (502, "", 5),
            (500, "internal", 1),
        ] {
            assert_eq!(exit_status(&error(status, code)).code(), expected, "{status} {code}");
        }
    }

    #[test]
    fn the_advice_says_that_a_change_may_have_been_made() {
        assert_eq!(advice(&error(503, "unavailable"))[0], "may have been made");
        assert!(!advice(&error(422, "validation_failed")).contains(&"may have been made".to_owned()));
    }

    #[test]
    fn the_advice_about_a_key_depends_on_what_is_wrong_with_it() {
        let of = |rejection: Rejection| rejection_advice(&rejection).unwrap_or_default();
        let no =
            |status, detail: &str| rejection(status, ProblemBody { detail: detail.into(), ..ProblemBody::default() });
        assert!(of(no(401, "")).contains("unknown, expired or revoked"));
        assert!(of(Rejection { has_key: false, ..no(401, "") }).contains("requires a key"));
        let role = "the key's role, operator, does not allow this";
        assert!(of(Rejection { required_role: "admin", ..no(403, role) }).ends_with("whose role is admin"));
        let tenant = "this is not for a key that is bound to a tenant";
        assert_eq!(of(no(403, tenant)), "use a key that is not bound to a tenant");
        assert!(of(no(403, "the key is bound to another tenant")).starts_with("leave out --tenant"));
        assert_eq!(of(Rejection { has_key: false, ..no(403, "without keys the server answers only") }), "");
    }

    #[test]
    fn the_advice_for_429_says_when_to_retry() {
        let of = |retry_after| {
            rejection_advice(&Rejection { retry_after, ..rejection(429, ProblemBody::default()) }).unwrap_or_default()
        };
        assert!(of(Some(Duration::from_secs(3))).starts_with("retry in 3 s"));
        assert_eq!(of(None), "retry later");
    }
}
