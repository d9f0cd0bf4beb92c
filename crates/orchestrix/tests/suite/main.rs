//! The facade as an application sees it: what the compiler says, what a transaction keeps together.

mod mistakes;
#[cfg(feature = "postgres")]
mod transaction;
