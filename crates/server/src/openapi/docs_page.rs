//! `GET /docs`: Swagger UI. It loads nothing from other hosts.

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

/// The path of the page. Scripts and styles are next to it.
const PAGE: &str = "/docs/";

/// The content security policy: nothing from other hosts. Swagger UI needs inline styles and `data:` images.
const POLICY: &str =
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";

static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    // The default validator is an external host, which would receive the document.
    Arc::new(Config::new(["/openapi.json"]).validator_url("none").try_it_out_enabled(true))
});

/// The routes of the page. They are not part of the OpenAPI document.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/docs", get(async || Redirect::permanent(PAGE)))
        .route(PAGE, get(async || serve_file("")))
        .route("/docs/{*file}", get(async |Path(path): Path<String>| serve_file(&path)))
}

fn serve_file(path: &str) -> Response {
    match utoipa_swagger_ui::serve(path, Arc::clone(&CONFIG)) {
        Ok(Some(file)) => {
            let headers = [
                (header::CONTENT_TYPE, file.content_type.as_str()),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, file.bytes).into_response()
        }
        Ok(None) => ApiError::new(Code::NotFound, "there is no such file").into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to read a file of Swagger UI");
            ApiError::internal().into_response()
        }
    }
}
