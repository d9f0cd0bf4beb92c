//! Answers that depend on the key's role.

use serde::Serialize;

/// The operator's view, or the client's view if the key's role is client. Serialized as the view itself.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum RoleView<O, C> {
    Operator(O),
    Client(C),
}
