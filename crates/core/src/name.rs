//! Validated names: parsed at the edge, trusted inside.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::FieldError;

fn check(field: &str, text: &str, max: usize, rule: &str, allowed: fn(char) -> bool) -> Result<(), FieldError> {
    let length = text.chars().count();
    if length == 0 || length > max {
        return Err(FieldError::new(field, format!("must have 1 to {max} characters, has {length}")));
    }
    match text.chars().find(|c| !allowed(*c)) {
        Some(bad) => Err(FieldError::new(field, format!("may hold only {rule}, not {bad:?}"))),
        None => Ok(()),
    }
}

fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

fn with_colon(c: char) -> bool {
    plain(c) || c == ':'
}

// Excludes white space, control characters and invisible formatting marks: keys that look the same must be the same.
fn visible(c: char) -> bool {
    !c.is_whitespace()
        && !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $field:literal, $max:literal, $rule:literal, $allowed:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// The greatest length, in characters.
            pub const MAX: usize = $max;

            /// Validates a name.
            pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
                let text = text.as_ref();
                check($field, text, $max, $rule, $allowed)?;
                Ok(Self(text.into()))
            }

            /// Wraps a name that is known to be valid, such as one from a store.
            pub fn trusted(text: &str) -> Self {
                Self(text.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = FieldError;
            fn from_str(text: &str) -> Result<Self, FieldError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $type {
            type Error = FieldError;
            fn try_from(text: String) -> Result<Self, FieldError> {
                Self::new(text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0.as_ref().into()
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// The queue that a job waits in.
    Queue, "queue", 128, "A-Z a-z 0-9 _ . -", plain
);
name!(
    /// The tenant that a job belongs to; `default` unless the request names one.
    Tenant, "tenant", 128, "A-Z a-z 0-9 _ . -", plain
);
name!(
    /// The type of a job. Workers claim the types that they have handlers for.
    JobType, "jobType", 128, "A-Z a-z 0-9 _ . - :", with_colon
);
name!(
    /// The key of a concurrency or rate limit that jobs share.
    LimitKey, "limitKey", 128, "A-Z a-z 0-9 _ . -", plain
);
name!(
    /// A tag to search jobs by.
    Tag, "tags", 128, "A-Z a-z 0-9 _ . - :", with_colon
);
name!(
    /// The client's key for one request. A repeated request with the same key returns the same job.
    IdempotencyKey, "idempotencyKey", 255, "visible characters", visible
);
name!(
    /// The name of a worker process, chosen by the worker.
    WorkerName, "workerId", 255, "visible characters", visible
);
name!(
    /// The id of one start of a worker. It distinguishes a restarted process from one that registers again.
    Instance, "instanceId", 128, "A-Z a-z 0-9 _ . -", plain
);
name!(
    /// The name of a node, a process that takes part in coordination, chosen by the node.
    NodeName, "nodeId", 255, "visible characters", visible
);

impl Default for Queue {
    fn default() -> Self {
        Self::trusted("default")
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self::trusted("default")
    }
}
