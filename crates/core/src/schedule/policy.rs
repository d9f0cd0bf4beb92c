//! What happens to occurrences that come late, or while the one before still runs; and the words for it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::FieldError;

macro_rules! words {
    ($(#[$attribute:meta])* $type:ident, $field:literal, { $($(#[$variant_attribute:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $type {
            $($(#[$variant_attribute])* $variant,)+
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stores and the API use.
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

words!(
    /// What to do about occurrences that nobody fired in time, because no leader was there.
    ///
    /// See [`plan`](mod@super::plan) for what counts as late.
    #[derive(Default)]
    Misfire, "misfire", {
        /// Let them go.
        Skip = "skip",
        /// Fire the latest, once, unless one is on time anyway; let the others go. The default.
        #[default]
        FireOnce = "fire_once",
        /// Fire the latest of them in order, up to a limit; let older ones go.
        CatchUp = "catch_up",
    }
);

words!(
    /// What to do when an occurrence is due and jobs of earlier ones are not finished.
    #[derive(Default)]
    Overlap, "overlap", {
        /// Let the new one go. The default.
        #[default]
        Skip = "skip",
        /// Run both.
        Allow = "allow",
        /// Let one wait until the running one is finished; let further ones go.
        BufferOne = "buffer_one",
        /// Cancel what runs, and run the new one.
        CancelRunning = "cancel_running",
    }
);

words!(
    /// What became of an occurrence.
    OccurrenceOutcome, "outcome", {
        /// A job was created.
        Fired = "fired",
        /// It was due, and a rule said no.
        Skipped = "skipped",
        /// It was due, and nobody was there in time.
        Missed = "missed",
    }
);

words!(
    /// Why an occurrence became what it did; one that fired on time has no reason.
    Reason, "reason", {
        /// Fired late, by the misfire policy.
        CatchUp = "catch_up",
        /// Fired because somebody asked for a past range.
        Backfill = "backfill",
        /// Fired because somebody asked for it now.
        Trigger = "trigger",
        /// Skipped because earlier jobs were not finished.
        Overlap = "overlap",
        /// Skipped because the schedule was paused.
        Paused = "paused",
        /// Missed because it was found too late.
        Late = "late",
    }
);

/// What the overlap policy says about one occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admission {
    /// Create its job.
    Fire,
    /// Create its job, to start when the unfinished one is finished, however that ends.
    FireAfter,
    /// Ask for the unfinished ones to be cancelled, and create its job.
    CancelAndFire,
    /// Create nothing.
    Skip,
}

impl Overlap {
    /// Decides, given how many jobs of this schedule are unfinished, the buffered one included.
    pub const fn admit(self, unfinished: u64) -> Admission {
        match (self, unfinished) {
            (Self::Allow, _) | (_, 0) => Admission::Fire,
            (Self::BufferOne, 1) => Admission::FireAfter,
            (Self::Skip | Self::BufferOne, _) => Admission::Skip,
            (Self::CancelRunning, _) => Admission::CancelAndFire,
        }
    }
}
