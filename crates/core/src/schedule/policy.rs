//! Policies for late and overlapping occurrences, and the outcomes that the ledger records.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::FieldError;

macro_rules! string_enum {
    ($(#[$attribute:meta])* $type:ident, $field:literal, { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $type {
            $($(#[$variant_attribute])* $variant,)+
        }

        impl $type {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name that stores and the API use.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = FieldError;
            fn from_str(text: &str) -> Result<Self, FieldError> {
                Self::ALL.iter().copied().find(|it| it.as_str() == text).ok_or_else(|| {
                    FieldError::new($field, format!("must be one of {}", [$($word),+].join(", ")))
                })
            }
        }
    };
}

string_enum!(
    /// What to do with late occurrences, which no leader fired in time.
    ///
    /// See [`plan`](mod@super::plan) for what counts as late.
    #[derive(Default)]
    Misfire, "misfire", {
        /// Record them as missed.
        Skip = "skip",
        /// Fire the latest, unless another is on time; record the others as missed. The default.
        #[default]
        FireOnce = "fire_once",
        /// Fire the latest ones in order, up to a limit; record older ones as missed.
        CatchUp = "catch_up",
    }
);

string_enum!(
    /// What to do with a due occurrence while jobs of earlier ones are unfinished.
    #[derive(Default)]
    Overlap, "overlap", {
        /// Skip the new occurrence. The default.
        #[default]
        Skip = "skip",
        /// Enqueue its job; both run.
        Allow = "allow",
        /// Enqueue one job that waits for the running one; skip further occurrences.
        BufferOne = "buffer_one",
        /// Cancel the unfinished jobs and enqueue the new one.
        CancelRunning = "cancel_running",
    }
);

string_enum!(
    /// The outcome of an occurrence.
    OccurrenceOutcome, "outcome", {
        /// A job was enqueued.
        Fired = "fired",
        /// It was due, and a policy or a pause skipped it.
        Skipped = "skipped",
        /// It was due, and no leader was there in time.
        Missed = "missed",
    }
);

string_enum!(
    /// Why an occurrence has its outcome. One that fired on time has no reason.
    Reason, "reason", {
        /// Fired late, by the misfire policy.
        CatchUp = "catch_up",
        /// Fired by a backfill of a past range.
        Backfill = "backfill",
        /// Fired by a manual trigger.
        Trigger = "trigger",
        /// Skipped because earlier jobs were unfinished.
        Overlap = "overlap",
        /// Skipped because the schedule was paused.
        Paused = "paused",
        /// Missed because it was found too late.
        Late = "late",
    }
);

/// What the overlap policy decides for one occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admission {
    /// Enqueue its job.
    Fire,
    /// Enqueue its job, to start when the unfinished one has finished in whatever way.
    FireAfter,
    /// Cancel the unfinished jobs and enqueue its job.
    CancelAndFire,
    /// Enqueue nothing.
    Skip,
}

impl Overlap {
    /// Decides, given the number of unfinished jobs of the schedule, including a buffered one.
    pub const fn admit(self, unfinished: u64) -> Admission {
        match (self, unfinished) {
            (Self::Allow, _) | (_, 0) => Admission::Fire,
            (Self::BufferOne, 1) => Admission::FireAfter,
            (Self::Skip | Self::BufferOne, _) => Admission::Skip,
            (Self::CancelRunning, _) => Admission::CancelAndFire,
        }
    }
}
