//! Who asks, and whether they may.
//!
//! | module | what it owns |
//! |---|---|
//! | `secret` | keys as their holders have them: made once, read from a header, compared |
//! | `keys` | who shows a key, and what those are told who show one that is none |
//! | `memory` | what was seen of keys lately, so that not every request asks the store |
//! | `looks` | looks at the store for keys, so many at once |
//! | `wrong` | keys that are none, counted by where they came from |
//! | `bucket` | how often something may be done |
//! | `caller` | who asks: what handlers know of them, and what they keep them to |
//! | `audit` | what operators do, written down before it is done |

pub(crate) mod audit;
pub(crate) mod bucket;
pub(crate) mod caller;
pub(crate) mod keys;
mod looks;
mod memory;
pub(crate) mod secret;
mod wrong;

/// Whom a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Whoever asks by its address, from the same machine; no page of another place.
    Anybody,
    /// Whoever shows a key.
    Keys,
    /// The process it is part of, in this name.
    Own(String),
}
