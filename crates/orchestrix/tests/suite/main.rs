//! The facade as an application sees it: what the compiler says, what a transaction keeps together.

mod mistakes;
mod recurring;
#[cfg(feature = "postgres")]
mod transaction;
