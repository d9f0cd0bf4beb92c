//! Authentication by API key, the caller's identity, and the audit log.
//!
//! | module | responsibility |
//! |---|---|
//! | `bearer_key` | the format of keys: generation, parsing, digest |
//! | `authenticator` | turns the `Authorization` header of a request into a [`Principal`](principal::Principal) |
//! | `key_cache` | recently looked-up keys |
//! | `key_lookup` | lookups of keys in the store: coalesced, bounded, in three classes |
//! | `failed_attempts` | the rate limiter of invalid keys, per client address |
//! | `token_bucket` | the rate limiter itself |
//! | `principal` | the authenticated caller, and what its tenant allows |
//! | `audit` | audit entries of operators' actions |
//!
//! # How a request is authenticated
//!
//! 1. The key is parsed: `ox_`, the key's id, and a secret. The store holds only a digest of the secret.
//! 2. The id is looked up in the **key cache**. An entry is valid for 1.5 s, so a revoked key stops working on every
//!    server within that time. A key in constant use never waits for the store: from 1 s on, the next request
//!    refreshes its entry in the background. Ids that do not exist are cached as well, separately, so that made-up ids
//!    cannot evict valid keys.
//! 3. On a cache miss the **key lookup** reads the key from the store. Concurrent requests with one id share one
//!    lookup. The number of concurrent lookups is bounded per class: keys that were valid before, new ids, and new ids
//!    from suspicious addresses. Each class has its own queue, so a flood of made-up ids uses at most a few
//!    connections of the store and delays no valid key.
//! 4. The digest of the secret is compared in constant time. Then the key's own rate limit applies, if it has one.
//! 5. Every failure is counted by the **failed-attempt limiter**, per IPv4 address or IPv6 /64 network. Above its
//!    limit, failures get 429 instead of 401, and the address is suspicious: see step 3. The limiter is consulted only
//!    after a key turned out to be invalid. So invalid keys from an address never block a valid key from the same
//!    address.
//!
//! Secrets have 256 random bits, so these limits are not against guessing. They bound the load that invalid keys
//! cause.
//!
//! While the store is unavailable, requests that do not use it (`GET /metrics`) are still served to keys that were
//! valid within the last hour. Long polls and subscriptions check their key again at intervals, and end soon after it
//! is revoked or expires.

pub(crate) mod audit;
pub(crate) mod authenticator;
pub(crate) mod bearer_key;
mod failed_attempts;
mod key_cache;
mod key_lookup;
pub(crate) mod principal;
pub(crate) mod token_bucket;

/// How a server authenticates its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// No keys: every local program is an admin. Requests of web pages are rejected, and the server listens on
    /// loopback only.
    Disabled,
    /// Every request needs an API key.
    Keys,
    /// The server has no socket, and its process is an admin under this name. See
    /// [`InProcessApi`](crate::InProcessApi).
    InProcess(String),
}
