//! `POST /admin/jobs/{jobId}/priority`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::admin::standing::{self, Standing};

use crate::{
    App,
    body::{ONE, Text},
    jobs::id,
    params::Named,
    refusal::Refusal,
};

/// Changes how urgent an unfinished job is.
pub(crate) async fn priority(
    State(app): State<Arc<App>>,
    Named(text): Named,
    body: Text<ONE>,
) -> Result<Json<Standing>, Refusal> {
    let priority = standing::read_priority(body.as_str()?)?;
    let id = id(&text)?;
    Ok(Json(Standing::of(id, app.store.reprioritize(id, priority).await?)))
}
