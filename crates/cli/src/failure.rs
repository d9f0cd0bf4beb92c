//! What went wrong, in words that say what to do, and the exit code that goes with it. The only place that knows codes.

use std::io::{self, Write};

use orchestrix_store::StoreError;
use thiserror::Error;

use crate::{
    api::{ApiError, Refused},
    database::POOLED,
    handshake::Handshake,
    logs,
};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome(u8);

impl Outcome {
    /// It did what it was asked to.
    pub(crate) const DONE: Self = Self(0);
    /// It found that something had failed.
    pub(crate) const FAILED: Self = Self(1);
    const USAGE: Self = Self(2);
    const NOT_FOUND: Self = Self(3);
    const CONFLICT: Self = Self(4);
    /// Whom it was to ask is not there.
    pub(crate) const UNREACHABLE: Self = Self(5);

    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        self.0
    }
}

/// What this program refuses by itself.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
    /// It was not carried out.
    #[error("{0}")]
    Failed(String),
    /// There is none.
    #[error("{0}")]
    NotFound(String),
    /// What it is about does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The database is not there.
    #[error("{0}")]
    Unreachable(String),
}

/// Says on standard error what went wrong, and how to exit.
pub(crate) fn report(error: &anyhow::Error) -> Outcome {
    if is_broken_pipe(error) {
        // Whoever read has seen enough.
        return Outcome::DONE;
    }
    let mut text = format!("error: {}\n", words(error));
    for advice in advice(error) {
        text += &format!("  {advice}\n");
    }
    say(&text);
    outcome(error)
}

/// Writes to standard error, which may be closed: then nobody wants to know.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(logs::said(text).as_bytes());
}

fn outcome(error: &anyhow::Error) -> Outcome {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(_)) => return Outcome::USAGE,
        Some(Failure::Failed(_)) => return Outcome::FAILED,
        Some(Failure::NotFound(_)) => return Outcome::NOT_FOUND,
        Some(Failure::Conflict(_)) => return Outcome::CONFLICT,
        Some(Failure::Unreachable(_)) => return Outcome::UNREACHABLE,
        None => {}
    }
    match error.downcast_ref::<ApiError>() {
        Some(ApiError::Refused(refused)) => return outcome_of(refused),
        Some(ApiError::Away { .. } | ApiError::Unknown { .. }) => return Outcome::UNREACHABLE,
        Some(ApiError::Unreadable { .. }) => return Outcome::FAILED,
        None => {}
    }
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::Invalid(_)) => Outcome::USAGE,
        Some(StoreError::Unavailable(_)) => Outcome::UNREACHABLE,
        _ => Outcome::FAILED,
    }
}

fn outcome_of(refused: &Refused) -> Outcome {
    match (refused.status, refused.told.code.as_str()) {
        (_, "idempotency_key_reused") => Outcome::CONFLICT,
        (400 | 413 | 415 | 422, _) => Outcome::USAGE,
        // Without a code it was not the API that answered.
        (404, code) if !code.is_empty() => Outcome::NOT_FOUND,
        (409, _) => Outcome::CONFLICT,
        (429 | 502..=504, _) => Outcome::UNREACHABLE,
        _ => Outcome::FAILED,
    }
}

fn words(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        parts.push(cause.to_string());
        // These say all that their causes do.
        if cause.is::<StoreError>() || cause.is::<ApiError>() {
            break;
        }
    }
    parts.join(": ")
}

/// What to do about it, a line each.
fn advice(error: &anyhow::Error) -> Vec<String> {
    let database = || "is the database up, and --database right? --connect-timeout waits longer for it".to_owned();
    match (error.downcast_ref::<ApiError>(), error.downcast_ref::<StoreError>()) {
        (Some(ApiError::Refused(refused)), _) => {
            let away = matches!(refused.status, 502..=504);
            let doubt = refused.doubt.filter(|_| away).map(str::to_owned);
            let what = if away && !refused.remote { Some(database()) } else { advice_on(refused) };
            doubt.into_iter().chain(what).collect()
        }
        (Some(ApiError::Away { why, .. }), _) => {
            let away = "is it up, and --server right? --connect-timeout waits longer for it";
            vec![Handshake::of(why).map_or(away, Handshake::advice).into()]
        }
        (Some(ApiError::Unknown { doubt, why, .. }), _) => {
            let handshake = Handshake::of(why).map(Handshake::advice);
            handshake.into_iter().chain([*doubt]).map(str::to_owned).collect()
        }
        (_, Some(StoreError::Unavailable(_))) => vec![database()],
        // What a pooler says to settings that belong to a connection of one's own.
        (_, Some(error)) if error.to_string().contains("unsupported startup parameter") => {
            vec![format!("a pooler in transaction mode is in between: end --database with {POOLED}")]
        }
        _ => Vec::new(),
    }
}

fn advice_on(refused: &Refused) -> Option<String> {
    let text = match (refused.status, refused.told.code.as_str()) {
        (_, "job_not_found") => {
            "`orchestrix jobs list` shows what there is; finished jobs are forgotten after some days"
        }
        (_, "schedule_not_found") => "`orchestrix schedules list` shows what there is",
        (_, "idempotency_key_reused") => {
            let choose = "choose another --idempotency-key";
            return Some(match refused.told.job_id {
                Some(existing) => format!("{choose}, or look at that job: orchestrix jobs get {existing}"),
                None => choose.into(),
            });
        }
        (401, _) if refused.keyed => {
            "the server does not know this key, or it has expired or was revoked: \
             give another by --api-key or ORCHESTRIX_API_KEY"
        }
        (401, _) => "the server asks for a key: give --api-key, or set ORCHESTRIX_API_KEY",
        (403, _) => return forbidden(refused),
        (404, "") => "is --server the address of an Orchestrix server, with its path if it has one?",
        (429, _) => {
            return Some(match refused.retry_after {
                Some(wait) => format!("come again in {} s, or let --connect-timeout wait for it", wait.as_secs()),
                None => "come again later".into(),
            });
        }
        (502..=504, _) => "the server is up, but cannot do its work: try again later, and see its log",
        _ => return None,
    };
    Some(text.into())
}

// They all have one code: only the words tell what a tenant forbids from what a role does.
fn forbidden(refused: &Refused) -> Option<String> {
    let says = |words: &str| refused.told.detail.contains(words);
    match () {
        () if says("bound to a tenant") => Some("use a key that is not bound to a tenant".into()),
        () if says("bound to another tenant") => {
            Some("name the tenant of the key, or none, or use a key that is not bound to one".into())
        }
        () if refused.keyed => Some(format!("this key may not do that: it takes one whose role is {}", refused.role)),
        // It is not about keys: the server says what it wants.
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

    fn refused(status: u16, code: &str) -> anyhow::Error {
        let told = ProblemBody { code: code.into(), detail: "d".into(), ..ProblemBody::default() };
        ApiError::from(said(status, told)).into()
    }

    fn said(status: u16, told: ProblemBody) -> Refused {
        let doubt = Some("who knows?");
        Refused { status, told, remote: true, keyed: true, role: "operator", retry_after: None, doubt }
    }

    #[test]
    fn every_answer_has_its_exit_code() {
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
            assert_eq!(outcome(&refused(status, code)).code(), expected, "{status} {code}");
        }
    }

    #[test]
    fn a_change_that_may_have_been_made_is_told_as_such() {
        assert_eq!(advice(&refused(503, "unavailable"))[0], "who knows?");
        assert!(!advice(&refused(422, "validation_failed")).contains(&"who knows?".to_owned()));
    }

    #[test]
    fn what_to_do_about_a_key_goes_by_what_is_wrong_with_it() {
        let of = |refused: Refused| advice_on(&refused).unwrap_or_default();
        let no = |status, detail: &str| said(status, ProblemBody { detail: detail.into(), ..ProblemBody::default() });
        assert!(of(no(401, "")).contains("has expired or was revoked"));
        assert!(of(Refused { keyed: false, ..no(401, "") }).contains("asks for a key"));
        let role = "the key's role, operator, does not allow this";
        assert!(of(Refused { role: "admin", ..no(403, role) }).ends_with("takes one whose role is admin"));
        let tenant = "this is not for a key that is bound to a tenant";
        assert_eq!(of(no(403, tenant)), "use a key that is not bound to a tenant");
        assert!(of(no(403, "the key is bound to another tenant")).starts_with("name the tenant of the key"));
        assert_eq!(of(Refused { keyed: false, ..no(403, "without keys the server answers only") }), "");
    }

    #[test]
    fn whoever_comes_too_often_is_told_when_to_come_again() {
        let of =
            |retry_after| advice_on(&Refused { retry_after, ..said(429, ProblemBody::default()) }).unwrap_or_default();
        assert!(of(Some(Duration::from_secs(3))).starts_with("come again in 3 s"));
        assert_eq!(of(None), "come again later");
    }
}
