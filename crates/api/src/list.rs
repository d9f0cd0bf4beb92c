//! Pages of lists.

use orchestrix_store::Page;
use serde::{Deserialize, Serialize};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListResponse<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Pass this as `cursor` to get the next page. `null` on the last page.
    /// A page with few or no items may still have a next page.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next_cursor: Option<String>,
}

impl<T> ListResponse<T> {
    /// Converts a page of a store, mapping each item with `view`.
    pub fn from_page<I, C: ToString>(page: Page<I, C>, view: impl Fn(I) -> T) -> Self {
        Self {
            items: page.items.into_iter().map(view).collect(),
            next_cursor: page.next.map(|cursor| cursor.to_string()),
        }
    }
}
