//! Concurrent calls from several stores: the answer that each gets, and the final state.

mod cancel;
mod claims;
mod dependents;
mod keys;
mod leases;
mod order;
