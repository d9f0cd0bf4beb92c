//! The facade as an application uses it: compiler errors, schedules and transactions.

mod mistakes;
mod recurring;
#[cfg(feature = "postgres")]
mod transaction;
