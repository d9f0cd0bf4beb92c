//! The lease token: proof that a worker owns a job.

use std::{fmt, str::FromStr};

use uuid::Uuid;

use crate::{FieldError, JobId};

/// Proof that a worker owns a job. Every write to a leased job carries it.
///
/// The counter grows with every lease of the job, whether or not the lease costs an attempt.
/// The secret makes a token unique even if the database is restored from a stale replica: there the counter may
/// repeat, 128 random bits do not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken {
    /// The leased job.
    pub job: JobId,
    /// The number of leases that the job has had, including this one.
    pub counter: i32,
    /// 128 random bits.
    pub secret: Uuid,
}

// The secret permits writes to the job, so it stays out of logs.
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
        parse().ok_or_else(|| FieldError::new("leaseToken", "must be a lease token as the claim returned it"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_parses_from_its_text(job: u128, counter: i32, secret: u128) {
            let token = LeaseToken { job: JobId::from_uuid(Uuid::from_u128(job)), counter, secret: Uuid::from_u128(secret) };
            prop_assert_eq!(token.to_string().parse::<LeaseToken>(), Ok(token));
        }

        #[test]
        fn any_other_text_is_refused_without_a_panic(text: String) {
            prop_assert!(text.parse::<LeaseToken>().is_err());
        }
    }
}
