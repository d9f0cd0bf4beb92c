//! The two ways to an answer. What is asked and answered is the same.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::Result;
use orchestrix_client::http::{ApiRequest, ApiResponse, HttpClient, HttpError, ServerEndpoint};
use orchestrix_server::Local;

use super::Request;
use crate::{
    arguments::Global,
    database::{Database, Opened},
    failure::Failure,
};

/// How long an answer may take: a batch of many jobs is one request.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) enum Transport {
    Database { local: Local, opened: Opened, place: String },
    Server { caller: HttpClient, keyed: bool },
}

// Never with a password or a key.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database { place, .. } => f.write_str(place),
            Self::Server { caller, .. } => write!(f, "the server at {}", caller.base_url()),
        }
    }
}

// Whoever has the database may do anything, and is known by the name that the machine knows them by.
fn who() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.ok().filter(|user| !user.is_empty() && user.len() <= 128 && !user.contains(char::is_control));
    format!("local:{}", user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string()))
}

impl Transport {
    pub(super) async fn open(global: &Global, makes_files: bool) -> Result<Self> {
        if let Some(server) = global.server()? {
            let server = ServerEndpoint {
                api_key: global.api_key(),
                connect_timeout: global.connect_timeout.min(ServerEndpoint::new("").connect_timeout),
                call_timeout: CALL_TIMEOUT,
                ..ServerEndpoint::new(server)
            };
            let caller = HttpClient::new(&server).map_err(|invalid| Failure::Usage(invalid.to_string()))?;
            return Ok(Self::Server { caller, keyed: server.api_key.is_some() });
        }
        let database = Database::of(global)?;
        let place = database.to_string();
        let opened = Opened::of(database, global, makes_files).await?;
        Ok(Self::Database { local: Local::new(Arc::clone(&opened.store), who()), opened, place })
    }

    pub(super) async fn close(self) {
        if let Self::Database { local, opened, .. } = self {
            drop(local);
            opened.close().await;
        }
    }

    pub(super) const fn is_remote(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Whether it shows a key.
    pub(super) const fn is_keyed(&self) -> bool {
        matches!(self, Self::Server { keyed: true, .. })
    }

    pub(super) async fn send(&self, request: &Request) -> Result<ApiResponse, HttpError> {
        match self {
            Self::Server { caller, .. } => {
                let call = ApiRequest {
                    body: request.body(),
                    wait: request.wait(),
                    ..ApiRequest::new(request.method(), request.path())
                };
                caller.send(call).await
            }
            Self::Database { local, .. } => {
                let answered = local.call(request.method(), request.path(), request.body()).await;
                let (status, body) = answered.map_err(|error| HttpError::InvalidRequest(error.to_string()))?;
                Ok(ApiResponse { status, retry_after: None, body: body.into() })
            }
        }
    }
}
