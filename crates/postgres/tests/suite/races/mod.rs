//! Two or more at once, from stores with connections of their own: what each is told, and what stands in the end.

mod cancel;
mod claims;
mod dependents;
mod keys;
mod leases;
mod order;
