//! An HTTP client of a server's API, shared by workers and the command line.
//!
//! | module | what it owns |
//! |---|---|
//! | `server_endpoint` | the server's address, the API key and timeouts |
//! | `http_client` | one request and its response, with every wait bounded |
//! | `problem_body` | parsing the body of an error response |
//!
//! It retries nothing: only the caller knows which requests are safe to repeat. Its errors say whether the server can
//! have processed the request.

mod http_client;
mod problem_body;
mod server_endpoint;

pub use http_client::{ApiRequest, ApiResponse, HttpClient, HttpError};
pub use problem_body::ProblemBody;
pub use reqwest::{Method, StatusCode};
pub use server_endpoint::ServerEndpoint;
