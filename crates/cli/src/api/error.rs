//! Why there is no answer, or not the one that was asked for.

use std::{fmt, time::Duration};

use orchestrix_api::Code;
use orchestrix_client::http::{ApiResponse, ProblemBody};
use thiserror::Error;

use super::{Request, transport::Transport};
use crate::handshake;

/// What went wrong between a command and what it talks to.
#[derive(Debug, Error)]
pub(crate) enum ApiError {
    /// It was refused.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// Nobody was there, or nobody who could be talked to.
    #[error("{}", handshake::away(place, why))]
    Away { place: String, why: String },
    /// Nobody answered, and it must not be asked again blindly.
    #[error("{place} gave no answer: {why}")]
    Unknown { place: String, why: String, doubt: &'static str },
    /// Whoever answered is not what this program knows.
    #[error("{place} answered what cannot be read: {why}")]
    Unreadable { place: String, why: String },
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self::Refused(Box::new(refused))
    }
}

/// An answer that says no.
#[derive(Debug, Error)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) told: ProblemBody,
    /// Whether it came over a socket.
    pub(crate) remote: bool,
    /// Whether a key was shown.
    pub(crate) keyed: bool,
    /// Whose key it takes.
    pub(crate) role: &'static str,
    /// When to come again, if the server said so.
    pub(crate) retry_after: Option<Duration>,
    /// Said if it may or may not have been carried out.
    pub(crate) doubt: Option<&'static str>,
}

impl Refused {
    pub(super) fn of(answer: &ApiResponse, request: &Request, transport: &Transport) -> Self {
        Self {
            status: answer.status.as_u16(),
            told: ProblemBody::parse(&answer.body),
            remote: transport.is_remote(),
            keyed: transport.is_keyed(),
            role: request.role(),
            retry_after: answer.retry_after,
            doubt: request.doubt(),
        }
    }

    /// One of several that were asked for at once: nothing was done to it.
    pub(crate) fn item(code: Code, detail: String) -> Self {
        let told = ProblemBody { code: code.as_str(), detail, ..ProblemBody::default() };
        let role = "operator";
        Self { status: code.status(), told, remote: true, keyed: true, role, retry_after: None, doubt: None }
    }
}

// Every bad field on a line of its own; one alone is what the problem is about.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProblemBody { code, detail, errors, .. } = &self.told;
        match (code.as_str(), detail.as_str()) {
            ("", _) => return write!(f, "the server answered {}", self.status),
            (code, "") => write!(f, "{code}")?,
            (_, detail) => f.write_str(detail)?,
        }
        if errors.len() > 1 {
            for error in errors {
                write!(f, "\n  {}: {}", error.field, error.message)?;
            }
        }
        Ok(())
    }
}
