//! `/worker`: the API for workers in any language.

pub(crate) mod leases;
pub(crate) mod outcomes;
pub(crate) mod progress;
pub(crate) mod registration;
mod registration_cache;
#[cfg(test)]
mod tests;

use orchestrix_api::Code;
use orchestrix_core::LeaseToken;

pub(crate) use registration_cache::RegistrationCache;

use crate::api_error::ApiError;

/// Parses the lease token in a path. A malformed token gets the same 409 as a lost lease.
fn parse_token(text: &str) -> Result<LeaseToken, ApiError> {
    text.parse().map_err(|_| ApiError::new(Code::LeaseLost, "the token owns no job"))
}
