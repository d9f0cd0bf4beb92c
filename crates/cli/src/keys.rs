//! `orchestrix keys`: creates, lists and revokes API keys.

use std::time::Duration;

use anyhow::Result;
use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_api::admin::key::{CreateKeyRequest, CreateKeyResponse, KeyView, RateLimitView};
use orchestrix_core::{KeyId, NewJob, Role, Tenant, Timestamp};
use serde::Serialize;

use crate::{
    api::{ApiClient, Request},
    confirmation::Confirmation,
    error::{CliError, ExitStatus},
    output::{Output, table},
    per_item::PerItem,
    times,
};

/// Create, list and revoke API keys
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a key and print it; it is shown only once
    #[command(after_help = "\
Create the first key directly on the database, with --database.

Examples:
  orchestrix keys create --role admin --database postgres://app@db/app
  orchestrix keys create --role client --tenant acme --name acme-web --expires 2160h")]
    Create(Create),
    /// List all keys, without their secrets
    #[command(after_help = "Example:\n  orchestrix keys list")]
    List,
    /// Revoke keys: servers reject them within 2 s, and close their event streams and WebSockets within 15 s
    #[command(after_help = "Example:\n  orchestrix keys revoke 4fk20dm1q7ze")]
    Revoke {
        /// The ids of the keys: the part between ox_ and the next underscore
        #[arg(required = true, value_name = "KEY_ID")]
        ids: Vec<KeyId>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The role: client (jobs), worker, operator (all but keys) or admin (all)
    #[arg(long, value_name = "ROLE", value_parser = role())]
    role: Role,

    /// A name for the key [default: its role]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Bind the key to this tenant; not possible for the role worker
    #[arg(long, value_name = "TENANT")]
    tenant: Option<Tenant>,

    /// Let the key expire after this long [default: never]
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    expires: Option<Duration>,

    /// Limit the key to this many requests per second on each server
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
}

// Parses the lifetime of a key.
fn lifetime(text: &str) -> Result<Duration, String> {
    let lifetime = times::duration(text)?;
    match (Duration::from_millis(1)..=NewJob::MAX_DELAY).contains(&lifetime) {
        true => Ok(lifetime),
        false => Err("must be from 1ms to ten years, such as 2160h".into()),
    }
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|text| text.parse::<Role>())
}

/// A revoked key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RevokedKey {
    key_id: KeyId,
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::Create(create) => create_key(create, api, output).await?,
        Command::List => list(api, output).await?,
        Command::Revoke { ids, confirmation } if confirmation.dry_run => return dry_run(&ids, api, output).await,
        Command::Revoke { ids, confirmation } => return revoke(&ids, confirmation, api, output).await,
    }
    Ok(ExitStatus::SUCCESS)
}

async fn create_key(create: Create, api: &ApiClient, output: &Output) -> Result<()> {
    let request = CreateKeyRequest {
        name: create.name.unwrap_or_else(|| create.role.to_string()),
        role: create.role.to_string(),
        tenant: create.tenant.map(|tenant| tenant.to_string()),
        expires_at: None,
        expires_in_seconds: create.expires.map(|expires| expires.as_secs_f64()),
        rate_limit: create.rate.map(|count| RateLimitView { count, per_seconds: 1.0, burst: None }),
    };
    let created: CreateKeyResponse = api.call(Request::post("/admin/keys").json(&request)?).await?;
    output.note(
        "Store the key now: it is not shown again. Send it as `Authorization: Bearer KEY`, or set ORCHESTRIX_API_KEY.",
    );
    // Alone on standard output, so that a script can use it directly.
    output.show(&created, std::slice::from_ref(&created), || format!("{}\n", created.key))
}

async fn list(api: &ApiClient, output: &Output) -> Result<()> {
    let keys = api.collect_pages(&Request::get("/admin/keys"), None, usize::MAX).await?;
    let now = Timestamp::now();
    output.page(&keys, |keys| describe(keys, now))
}

fn describe(keys: &[KeyView], now: Timestamp) -> String {
    let header = ["KEY", "NAME", "ROLE", "TENANT", "RATE", "STATE", "CREATED", "EXPIRES"];
    table(header, keys.iter().map(|key| row(key, now)))
}

fn row(key: &KeyView, now: Timestamp) -> [String; 8] {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now => "expired",
        _ => "valid",
    };
    [
        key.key_id.to_string(),
        key.name.clone(),
        key.role.to_string(),
        key.tenant.as_ref().map_or_else(|| "any".into(), ToString::to_string),
        key.rate_limit.as_ref().map_or_else(|| "-".into(), describe_rate),
        state.into(),
        times::relative(key.created_at, now),
        key.expires_at.map_or_else(|| "-".into(), |end| times::relative(end, now)),
    ]
}

// The rate, and the burst if it differs.
fn describe_rate(limit: &RateLimitView) -> String {
    let RateLimitView { count, per_seconds, burst } = limit;
    let per = if *per_seconds == 1.0 { "s".to_owned() } else { format!("{per_seconds}s") };
    match burst {
        Some(burst) if burst != count => format!("{count}/{per}, burst {burst}"),
        _ => format!("{count}/{per}"),
    }
}

// Shows the keys without revoking them.
async fn dry_run(ids: &[KeyId], api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let keys = api.collect_pages::<KeyView>(&Request::get("/admin/keys"), None, usize::MAX).await?.items;
    let results = PerItem::apply("key", ids, async |id| {
        let key = keys.iter().find(|key| key.key_id == *id).cloned();
        key.ok_or_else(|| CliError::NotFound("not found".into()).into())
    });
    let results = results.await;
    let count = results.succeeded.iter().filter(|key| key.revoked_at.is_none()).count();
    let status = results.print(output, |keys| describe(keys, Timestamp::now()))?;
    output.note(&format!("dry run: {} would be revoked", count_keys(count)));
    Ok(status)
}

async fn revoke(ids: &[KeyId], confirmation: Confirmation, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    confirmation.require_at_terminal(&format!("{} would be revoked permanently.", count_keys(ids.len())))?;
    let results = PerItem::apply("key", ids, async |key_id| {
        api.execute(Request::delete(format!("/admin/keys/{key_id}"))).await?;
        Ok(RevokedKey { key_id: key_id.clone() })
    });
    results.await.print(output, |revoked| table(["REVOKED"], revoked.iter().map(|key| [key.key_id.to_string()])))
}

fn count_keys(count: usize) -> String {
    if count == 1 { "1 key".into() } else { format!("{count} keys") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_is_shown_briefly() {
        let of = |count, per_seconds, burst| describe_rate(&RateLimitView { count, per_seconds, burst });
        assert_eq!(of(5, 1.0, Some(5)), "5/s");
        assert_eq!(of(100, 60.0, None), "100/60s");
        assert_eq!(of(5, 0.5, Some(20)), "5/0.5s, burst 20");
    }
}
