//! Which part of a list.

use orchestrix_core::FieldError;
use orchestrix_store::PageRequest;

use crate::{Object, job::Refusal};

/// How many items a part holds unless told otherwise.
pub const LIMIT: usize = 100;

/// Which part of a list.
#[derive(Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct PartRequest {
    /// Where to go on: the `nextCursor` of the part before.
    #[cfg_attr(feature = "openapi", param(min_length = 1))]
    pub cursor: Option<String>,
    /// How many at most; 100 unless told otherwise.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
}

/// Takes the part out of an object of texts; `parse` reads a cursor as it was answered.
pub fn take<C>(object: &mut Object<'_>, parse: impl FnOnce(&str) -> Option<C>) -> PageRequest<C> {
    let cursor = object
        .text("cursor", |text| parse(text).ok_or_else(|| FieldError::new("", "is not one that was answered here")));
    let limit = object.text("limit", |text| {
        let most = PageRequest::<()>::MAX_LIMIT;
        text.parse().map_err(|_| FieldError::new("", format!("must be a whole number from 1 to {most}")))
    });
    let page = PageRequest { cursor, limit: limit.unwrap_or(LIMIT) };
    if let Err(error) = page.validate() {
        object.bad(&error.field, error.message);
    }
    page
}

/// Reads a question that is about nothing but the part.
pub fn read<C>(text: &str, parse: impl FnOnce(&str) -> Option<C>) -> Result<PageRequest<C>, Refusal> {
    let mut object = Object::read(text)?;
    let page = take(&mut object, parse);
    object.end()?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_out_of_range_is_told_the_range() {
        for limit in ["-1", "0", "1001", "99999999999999999999", "1.5", "many", ""] {
            let asked = serde_json::json!({ "limit": limit }).to_string();
            let Err(Refusal::Invalid(invalid)) = read::<i64>(&asked, |text| text.parse().ok()) else {
                panic!("taken: {limit}");
            };
            assert_eq!(invalid.errors.len(), 1, "{limit}");
            assert!(invalid.errors[0].message.contains("from 1 to 1000"), "{limit}: {}", invalid.errors[0]);
        }
    }
}
