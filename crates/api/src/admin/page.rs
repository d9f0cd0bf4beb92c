//! Pages of lists.

use orchestrix_core::FieldError;
use orchestrix_store::PageRequest;

use crate::{ObjectReader, RequestError};

/// The default number of items per page.
pub const DEFAULT_LIMIT: usize = 100;

/// Selects a page of a list.
#[derive(Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct PageParams {
    /// The `nextCursor` of the previous page.
    #[cfg_attr(feature = "openapi", param(min_length = 1))]
    pub cursor: Option<String>,
    /// The most items to return. Defaults to 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
}

/// Takes `cursor` and `limit` out of an object of strings. `parse` parses the cursor.
pub fn take_page<C>(object: &mut ObjectReader<'_>, parse: impl FnOnce(&str) -> Option<C>) -> PageRequest<C> {
    let cursor = object.string("cursor", |text| {
        parse(text).ok_or_else(|| FieldError::new("", "must be the nextCursor of a previous page"))
    });
    let limit = object.string("limit", |text| {
        let max = PageRequest::<()>::MAX_LIMIT;
        text.parse().map_err(|_| FieldError::new("", format!("must be an integer from 1 to {max}")))
    });
    let page = PageRequest { cursor, limit: limit.unwrap_or(DEFAULT_LIMIT) };
    if let Err(error) = page.validate() {
        object.add_error(&error.field, error.message);
    }
    page
}

/// Parses a query with no parameters other than `cursor` and `limit`.
pub fn parse_page<C>(text: &str, parse: impl FnOnce(&str) -> Option<C>) -> Result<PageRequest<C>, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let page = take_page(&mut object, parse);
    object.finish()?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_out_of_range_names_the_range() {
        for limit in ["-1", "0", "1001", "99999999999999999999", "1.5", "many", ""] {
            let query = serde_json::json!({ "limit": limit }).to_string();
            let Err(RequestError::Invalid(invalid)) = parse_page::<i64>(&query, |text| text.parse().ok()) else {
                panic!("accepted: {limit}");
            };
            assert_eq!(invalid.errors.len(), 1, "{limit}");
            assert!(invalid.errors[0].message.contains("from 1 to 1000"), "{limit}: {}", invalid.errors[0]);
        }
    }
}
