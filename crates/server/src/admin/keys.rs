//! `GET /admin/keys`, `POST /admin/keys` and `DELETE /admin/keys/{keyId}`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    Code, Listed,
    admin::{
        key::{self, KeyMade, KeyRequest, KeyView, Wanted},
        page::{self, PartRequest},
    },
    schema::KeyText,
};
use orchestrix_core::{KeyId, Timestamp};
use orchestrix_store::{NewKey, Store, StoreError};

use crate::{
    App,
    api_error::ApiError,
    auth::bearer_key::BearerKey,
    body::JsonBody,
    openapi::problems::NoSuchKey,
    params::{PathParam, QueryParams},
};

/// How many ids are drawn at most: that one is taken, of so many, is next to impossible.
const DRAWS: usize = 3;

/// Lists keys by id, without their secrets.
#[utoipa::path(
    get,
    path = "/admin/keys",
    tag = "admin",
    operation_id = "listKeys",
    params(PartRequest),
    responses((status = 200, description = "Keys by id.", body = Listed<KeyView>)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>, asked: QueryParams) -> Result<Json<Listed<KeyView>>, ApiError> {
    let page = page::read(&asked.0, |text| KeyId::new(text).ok())?;
    Ok(Json(Listed::of(app.store.list_keys(&page).await?, KeyView::from)))
}

/// Makes a key. Its secret is in this answer and nowhere else.
#[utoipa::path(
    post,
    path = "/admin/keys",
    tag = "admin",
    operation_id = "createKey",
    request_body = KeyRequest,
    responses((status = 201, description = "The key.", body = KeyMade)),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    body: JsonBody,
) -> Result<(StatusCode, Json<KeyMade>), ApiError> {
    let wanted = key::read(body.as_str()?, Timestamp::now())?;
    Ok((StatusCode::CREATED, Json(make(&*app.store, wanted, BearerKey::generate).await?)))
}

// An id that somebody has already is drawn again.
async fn make(store: &dyn Store, wanted: Wanted, draw: impl Fn() -> BearerKey) -> Result<KeyMade, StoreError> {
    let mut draws = 0;
    loop {
        let shown = draw();
        let key = NewKey {
            id: shown.id.clone(),
            digest: shown.digest(),
            name: wanted.name.clone(),
            role: wanted.role,
            tenant: wanted.tenant.clone(),
            rate_limit: wanted.rate_limit,
            expires_at: wanted.expires_at,
        };
        draws += 1;
        match store.create_key(key).await {
            Err(StoreError::KeyExists(_)) if draws < DRAWS => {}
            made => return Ok(KeyMade { key: shown.reveal(), view: made?.into() }),
        }
    }
}

/// Takes a key back. Servers refuse it within two seconds.
#[utoipa::path(
    delete,
    path = "/admin/keys/{keyId}",
    tag = "admin",
    operation_id = "revokeKey",
    params(("keyId" = KeyText, Path, description = "The key's id.")),
    responses((status = 204, description = "It is taken back."), (status = 404, response = NoSuchKey)),
)]
pub(crate) async fn revoke(State(app): State<Arc<App>>, PathParam(text): PathParam) -> Result<StatusCode, ApiError> {
    let unknown = || ApiError::new(Code::KeyNotFound, "there is no such key");
    let id = KeyId::new(&text).map_err(|_| unknown())?;
    let known = app.store.revoke_key(&id).await?;
    // Here it is refused at once.
    app.authenticator.forget(&id);
    match known {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use orchestrix_memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn an_id_that_somebody_has_is_drawn_again() {
        let store = MemoryStore::new();
        let wanted = || key::read(r#"{"name": "n", "role": "client"}"#, Timestamp::now()).unwrap();
        let taken = make(&store, wanted(), BearerKey::generate).await.unwrap().key;
        let again = || BearerKey::parse(&taken).unwrap();
        let drawn = RefCell::new(vec![BearerKey::generate(), again(), again()]);
        let made = make(&store, wanted(), || drawn.borrow_mut().pop().unwrap()).await.unwrap();
        assert_ne!(made.key, taken);
        assert!(drawn.into_inner().is_empty());
        let refused = make(&store, wanted(), again).await.map(drop);
        assert!(matches!(refused, Err(StoreError::KeyExists(_))), "not for ever: {refused:?}");
    }
}
