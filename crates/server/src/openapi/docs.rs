//! `GET /docs`: a page to read the description and to try requests. Everything on it comes from this server.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    extract::Path,
    http::header,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use orchestrix_api::Code;
use utoipa_swagger_ui::Config;

use crate::{App, api_error::ApiError};

/// Where the page begins; its scripts and styles lie beside it.
const PAGE: &str = "/docs/";

/// What the page may load: nothing from elsewhere, whatever its scripts come up with. They draw by inline styles and `data:` images.
const POLICY: &str =
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";

static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    // A validator would be another host, which is told of this one.
    Arc::new(Config::new(["/openapi.json"]).validator_url("none").try_it_out_enabled(true))
});

/// The page and what it needs. It is for people, so it is no part of the description.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/docs", get(async || Redirect::permanent(PAGE)))
        .route(PAGE, get(async || file("")))
        .route("/docs/{*file}", get(async |Path(path): Path<String>| file(&path)))
}

fn file(path: &str) -> Response {
    match utoipa_swagger_ui::serve(path, Arc::clone(&CONFIG)) {
        Ok(Some(file)) => {
            let headers = [
                (header::CONTENT_TYPE, file.content_type.as_str()),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, file.bytes).into_response()
        }
        Ok(None) => ApiError::new(Code::NotFound, "the page has no such file").into_response(),
        Err(error) => {
            tracing::error!(%error, "a file of the page cannot be read");
            ApiError::internal().into_response()
        }
    }
}
