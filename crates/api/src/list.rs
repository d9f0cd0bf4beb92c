//! Parts of lists.

use orchestrix_store::Page;
use serde::{Deserialize, Serialize};

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Listed<T> {
    /// What is in it.
    pub items: Vec<T>,
    /// Where the next part begins; null when nothing more follows. A part with few items, or none, may have a next one.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next_cursor: Option<String>,
}

impl<T> Listed<T> {
    /// A part as a store gave it, each item shown by `view`.
    pub fn of<I, C: ToString>(page: Page<I, C>, view: impl Fn(I) -> T) -> Self {
        Self {
            items: page.items.into_iter().map(view).collect(),
            next_cursor: page.next.map(|cursor| cursor.to_string()),
        }
    }
}
