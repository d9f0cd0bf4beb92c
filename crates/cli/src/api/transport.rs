//! The two ways to send a request: to a server, or to the router in this process. Requests and responses are the same.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::Result;
use orchestrix_client::http::{ApiRequest, ApiResponse, HttpClient, HttpError, ServerEndpoint};
use orchestrix_server::InProcessApi;

use super::Request;
use crate::{
    arguments::Global,
    database::{Database, OpenDatabase},
    error::CliError,
};

/// The time limit of a request. Generous, because a batch of many jobs is one request.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) enum Transport {
    Database { local: InProcessApi, database: OpenDatabase, label: String },
    Server { caller: HttpClient, has_key: bool },
}

// Never shows a password or a key.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database { label, .. } => f.write_str(label),
            Self::Server { caller, .. } => write!(f, "the server at {}", caller.base_url()),
        }
    }
}

// A user with access to the database may do everything. Audit entries name them by their login on this machine.
fn local_actor() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.ok().filter(|user| !user.is_empty() && user.len() <= 128 && !user.contains(char::is_control));
    format!("local:{}", user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string()))
}

impl Transport {
    pub(super) async fn open(global: &Global, creates_file: bool) -> Result<Self> {
        if let Some(server) = global.server()? {
            let server = ServerEndpoint {
                api_key: global.api_key(),
                connect_timeout: global.connect_timeout.min(ServerEndpoint::new("").connect_timeout),
                call_timeout: CALL_TIMEOUT,
                ..ServerEndpoint::new(server)
            };
            let caller = HttpClient::new(&server).map_err(|invalid| CliError::Usage(format!("--{invalid}")))?;
            return Ok(Self::Server { caller, has_key: server.api_key.is_some() });
        }
        let database = Database::from_arguments(global)?;
        let label = database.to_string();
        let database = OpenDatabase::open(database, global, creates_file).await?;
        Ok(Self::Database { local: InProcessApi::new(Arc::clone(&database.store), local_actor()), database, label })
    }

    pub(super) async fn close(self) {
        if let Self::Database { local, database, .. } = self {
            drop(local);
            database.close().await;
        }
    }

    pub(super) const fn is_remote(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Whether requests carry an API key.
    pub(super) const fn has_key(&self) -> bool {
        matches!(self, Self::Server { has_key: true, .. })
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
                let result = local.call(request.method(), request.path(), request.body()).await;
                let (status, body) = result.map_err(|error| HttpError::InvalidRequest(error.to_string()))?;
                Ok(ApiResponse { status, retry_after: None, body: body.into() })
            }
        }
    }
}
