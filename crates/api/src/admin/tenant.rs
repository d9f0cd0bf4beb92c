//! Tenants: their settings.

use orchestrix_core::{Tenant, Weight};
use orchestrix_store::{TenantPatch, TenantSettings};
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::schema::TenantWeight;
use crate::{ObjectReader, RequestError};

/// The settings of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(examples(json!({"name": "acme", "weight": 3}))))]
pub struct TenantView {
    /// The name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Tenant,
    /// The weight: the tenant's share among the tenants of the same priority.
    #[cfg_attr(feature = "openapi", schema(value_type = TenantWeight))]
    pub weight: u16,
}

impl TenantView {
    /// The settings of the tenant with this name.
    pub const fn new(name: Tenant, settings: TenantSettings) -> Self {
        Self { name, weight: settings.weight.get() }
    }
}

/// Changes settings of a tenant. An absent field stays as it is; `null` resets it to its default.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(examples(json!({"weight": 3}))))]
pub struct TenantRequest {
    /// The weight: the tenant's share among the tenants of the same priority. A tenant of weight 3 gets three times as
    /// many jobs started as a tenant of weight 1 while both have claimable jobs. Unchanged by default; `null` resets it
    /// to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TenantWeight>))]
    pub weight: Option<u16>,
}

/// Parses a [`TenantRequest`].
pub fn parse_tenant(text: &str) -> Result<TenantPatch, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let weight = match object.take_null("weight") {
        true => Some(Weight::default()),
        false => {
            let weight = object.get("weight", &format!("an integer from 1 to {}", Weight::MAX));
            weight.and_then(|weight| object.record("weight", Weight::new(weight)))
        }
    };
    object.finish()?;
    Ok(TenantPatch { weight })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_weight_stays_and_null_resets_it() {
        let weight = |text: &str| parse_tenant(text).unwrap().weight.map(Weight::get);
        assert_eq!(weight("{}"), None);
        assert_eq!(weight(r#"{"weight": null}"#), Some(1));
        assert_eq!(["3", "3.0", "1000"].map(|n| weight(&format!(r#"{{"weight": {n}}}"#))), [3, 3, 1_000].map(Some));
    }

    #[test]
    fn a_bad_weight_names_the_field_and_the_range() {
        for bad in ["0", "-1", "1001", "1.5", "1e300", "99999999999999999999", r#""3""#, "true", "[]", "{}"] {
            let Err(RequestError::Invalid(invalid)) = parse_tenant(&format!(r#"{{"weight": {bad}}}"#)) else {
                panic!("accepted: {bad}");
            };
            assert_eq!((invalid.errors.len(), invalid.errors[0].field.as_str()), (1, "weight"), "{bad}");
            assert!(invalid.errors[0].message.contains("from 1 to 1000"), "{bad}: {}", invalid.errors[0]);
        }
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        let text = r#"{"weight": 3, "maxPending": 5, "maxConcurrency": null}"#;
        let Err(RequestError::Invalid(invalid)) = parse_tenant(text) else { panic!("accepted") };
        let mut fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["maxConcurrency", "maxPending"]);
    }
}
