//! Proof of ownership.

use std::{fmt, str::FromStr};

use uuid::Uuid;

use crate::{FieldError, JobId};

/// What a worker shows to write to a job it was given.
///
/// The counter grows with every lease of the job, whether or not it costs an attempt. The secret keeps a database
/// that was restored from a stale replica from handing out a token twice: the counter may repeat there, 128 random
/// bits do not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken {
    /// The job that is leased.
    pub job: JobId,
    /// How many leases the job has had, this one included.
    pub counter: i32,
    /// 128 random bits.
    pub secret: Uuid,
}

// Whoever has the secret may write to the job: it stays out of logs.
impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseToken({}.{})", self.job, self.counter)
    }
}

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.job.as_uuid().simple(), self.counter, self.secret.simple())
    }
}

impl FromStr for LeaseToken {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let parse = || {
            let mut parts = text.splitn(3, '.');
            Some(Self {
                job: JobId::from_uuid(Uuid::try_parse(parts.next()?).ok()?),
                counter: parts.next()?.parse().ok()?,
                secret: Uuid::try_parse(parts.next()?).ok()?,
            })
        };
        parse().ok_or_else(|| FieldError::new("leaseToken", "is not a lease token"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_survives_its_text(job: u128, counter: i32, secret: u128) {
            let token = LeaseToken { job: JobId::from_uuid(Uuid::from_u128(job)), counter, secret: Uuid::from_u128(secret) };
            prop_assert_eq!(token.to_string().parse::<LeaseToken>(), Ok(token));
        }

        #[test]
        fn other_text_is_refused_without_panic(text: String) {
            prop_assert!(text.parse::<LeaseToken>().is_err());
        }
    }
}
