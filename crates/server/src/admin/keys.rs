//! `/admin/keys`: creates, lists and revokes API keys.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    Code, ListResponse,
    admin::{
        key::{self, CreateKeyRequest, CreateKeyResponse, KeySpec, KeyView},
        page::{self, PageParams},
    },
    schema::KeyIdText,
};
use orchestrix_core::{KeyId, Timestamp};
use orchestrix_store::{NewKey, Store, StoreError};

use crate::{
    App,
    api_error::ApiError,
    auth::bearer_key::BearerKey,
    body::JsonBody,
    openapi::problems::KeyNotFound,
    params::{PathParam, QueryParams},
};

/// The most random ids to try. A collision is next to impossible.
const MAX_TRIES: usize = 3;

/// Lists API keys without their secrets, ordered by id.
#[utoipa::path(
    get,
    path = "/admin/keys",
    tag = "admin",
    operation_id = "listKeys",
    params(PageParams),
    responses((status = 200, description = "A page of API keys.", body = ListResponse<KeyView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    query: QueryParams,
) -> Result<Json<ListResponse<KeyView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| KeyId::new(text).ok())?;
    Ok(Json(ListResponse::from_page(app.store.list_keys(&page).await?, KeyView::from)))
}

/// Creates an API key.
///
/// Only this response contains the secret.
#[utoipa::path(
    post,
    path = "/admin/keys",
    tag = "admin",
    operation_id = "createKey",
    request_body = CreateKeyRequest,
    responses((status = 201, description = "The key with its secret.", body = CreateKeyResponse)),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    body: JsonBody,
) -> Result<(StatusCode, Json<CreateKeyResponse>), ApiError> {
    let spec = key::parse_key(body.as_str()?, Timestamp::now())?;
    Ok((StatusCode::CREATED, Json(create_key(&*app.store, spec, BearerKey::generate).await?)))
}

// Tries another id if the first is taken.
async fn create_key(
    store: &dyn Store,
    spec: KeySpec,
    generate: impl Fn() -> BearerKey,
) -> Result<CreateKeyResponse, StoreError> {
    let mut tries = 0;
    loop {
        let secret = generate();
        let key = NewKey {
            id: secret.id.clone(),
            digest: secret.digest(),
            name: spec.name.clone(),
            role: spec.role,
            tenant: spec.tenant.clone(),
            rate_limit: spec.rate_limit,
            expires_at: spec.expires_at,
        };
        tries += 1;
        match store.create_key(key).await {
            Err(StoreError::KeyExists(_)) if tries < MAX_TRIES => {}
            created => return Ok(CreateKeyResponse { key: secret.reveal(), view: created?.into() }),
        }
    }
}

/// Revokes an API key.
///
/// All servers reject the key within two seconds.
#[utoipa::path(
    delete,
    path = "/admin/keys/{keyId}",
    tag = "admin",
    operation_id = "revokeKey",
    params(("keyId" = KeyIdText, Path, description = "The key's id.")),
    responses((status = 204, description = "The key is revoked."), (status = 404, response = KeyNotFound)),
)]
pub(crate) async fn revoke(State(app): State<Arc<App>>, PathParam(text): PathParam) -> Result<StatusCode, ApiError> {
    let not_found = || ApiError::new(Code::KeyNotFound, "there is no such key");
    let id = KeyId::new(&text).map_err(|_| not_found())?;
    let exists = app.store.revoke_key(&id).await?;
    // This server rejects the key at once.
    app.authenticator.forget(&id);
    match exists {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use orchestrix_memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn creation_tries_another_id_when_the_first_is_taken() {
        let store = MemoryStore::new();
        let spec = || key::parse_key(r#"{"name": "n", "role": "client"}"#, Timestamp::now()).unwrap();
        let taken = create_key(&store, spec(), BearerKey::generate).await.unwrap().key;
        let again = || BearerKey::parse(&taken).unwrap();
        let secrets = RefCell::new(vec![BearerKey::generate(), again(), again()]);
        let created = create_key(&store, spec(), || secrets.borrow_mut().pop().unwrap()).await.unwrap();
        assert_ne!(created.key, taken);
        assert!(secrets.into_inner().is_empty());
        let refused = create_key(&store, spec(), again).await.map(drop);
        assert!(matches!(refused, Err(StoreError::KeyExists(_))), "the number of tries is bounded: {refused:?}");
    }
}
