//! What may be seen: operators are told all of a job, clients what is theirs to know.

use serde::Serialize;

/// An answer to an operator, or the one that a client gets to the same question.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Seen<O, C> {
    Operator(O),
    Client(C),
}
