//! `POST /admin/jobs/{jobId}/priority`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    admin::standing::{self, PriorityRequest, Standing},
    schema::Id,
};

use crate::{
    App,
    auth::caller::Caller,
    body::Text,
    jobs::id,
    openapi::problems::{Finished, NoSuchJob},
    params::Named,
    refusal::Refusal,
};

/// Changes how urgent an unfinished job is.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/priority",
    tag = "admin",
    operation_id = "setPriority",
    params(("jobId" = Id, Path, description = "The job's id.")),
    request_body = PriorityRequest,
    responses((status = 200, description = "It has this priority.", body = Standing), (status = 404, response = NoSuchJob), (status = 409, response = Finished)),
)]
pub(crate) async fn priority(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(text): Named,
    body: Text,
) -> Result<Json<Standing>, Refusal> {
    let priority = standing::read_priority(body.as_str()?)?;
    let id = id(&text)?;
    caller.owns(&app, id).await?;
    Ok(Json(Standing::of(id, app.store.reprioritize_job(id, priority).await?)))
}
