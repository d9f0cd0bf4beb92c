//! `orchestrix keys`: who may use the API, and what they may do with it.

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
    api::{Api, Request},
    consent::Consent,
    each::Each,
    failure::{Failure, Outcome},
    output::{Output, table},
    times,
};

/// Make, list and revoke API keys
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a key, and show it once
    #[command(after_help = "\
The first one is made straight on the database, as nobody has a key yet.

Examples:
  orchestrix keys create --role admin --database postgres://app@db/app
  orchestrix keys create --role client --tenant acme --name acme-web --expires 2160h")]
    Create(Create),
    /// Show every key, without its secret
    #[command(after_help = "Example:\n  orchestrix keys list")]
    List,
    /// Take keys back: servers refuse them within 2 s, and end their event streams and WebSockets within 15 s
    #[command(after_help = "Example:\n  orchestrix keys revoke 4fk20dm1q7ze")]
    Revoke {
        /// Their ids: what stands between ox_ and the next underscore
        #[arg(required = true, value_name = "KEY_ID")]
        ids: Vec<KeyId>,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What it allows: client (jobs), worker, operator (all but keys) or admin
    #[arg(long, value_name = "ROLE", value_parser = role())]
    role: Role,

    /// What people should call it; by default its role
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Bind it to a tenant: it acts in it alone. A worker's key cannot be bound
    #[arg(long, value_name = "TENANT")]
    tenant: Option<Tenant>,

    /// After how long it ends; not at all, unless told otherwise
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    expires: Option<Duration>,

    /// How many requests a second it may make, of each server
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
}

// How long a key may last.
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

/// A key that was taken back.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Revoked {
    key_id: KeyId,
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::Create(create) => make(create, api, output).await?,
        Command::List => list(api, output).await?,
        Command::Revoke { ids, consent } if consent.dry_run => return rehearse(&ids, api, output).await,
        Command::Revoke { ids, consent } => return revoke(&ids, consent, api, output).await,
    }
    Ok(Outcome::DONE)
}

async fn make(create: Create, api: &Api, output: &Output) -> Result<()> {
    let request = CreateKeyRequest {
        name: create.name.unwrap_or_else(|| create.role.to_string()),
        role: create.role.to_string(),
        tenant: create.tenant.map(|tenant| tenant.to_string()),
        expires_at: None,
        expires_in_seconds: create.expires.map(|expires| expires.as_secs_f64()),
        rate_limit: create.rate.map(|count| RateLimitView { count, per_seconds: 1.0, burst: None }),
    };
    let made: CreateKeyResponse = api.call(Request::post("/admin/keys").with(&request)?).await?;
    output.note(
        "Keep it: it is not shown again. It is sent as Authorization: Bearer KEY, or stands in ORCHESTRIX_API_KEY.",
    );
    // By itself, so that it can be taken as it is.
    output.show(&made, std::slice::from_ref(&made), || format!("{}\n", made.key))
}

async fn list(api: &Api, output: &Output) -> Result<()> {
    let keys = api.gather(&Request::get("/admin/keys"), None, usize::MAX).await?;
    let now = Timestamp::now();
    output.page(&keys, |keys| described(keys, now))
}

fn described(keys: &[KeyView], now: Timestamp) -> String {
    let header = ["KEY", "NAME", "ROLE", "TENANT", "RATE", "STATE", "CREATED", "EXPIRES"];
    table(header, keys.iter().map(|key| row(key, now)))
}

fn row(key: &KeyView, now: Timestamp) -> [String; 8] {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now => "expired",
        _ => "good",
    };
    [
        key.key_id.to_string(),
        key.name.clone(),
        key.role.to_string(),
        key.tenant.as_ref().map_or_else(|| "any".into(), ToString::to_string),
        key.rate_limit.as_ref().map_or_else(|| "-".into(), rate),
        state.into(),
        times::relative(key.created_at, now),
        key.expires_at.map_or_else(|| "-".into(), |end| times::relative(end, now)),
    ]
}

// How often it may be used, and how often at once if that is more or less.
fn rate(limit: &RateLimitView) -> String {
    let RateLimitView { count, per_seconds, burst } = limit;
    let per = if *per_seconds == 1.0 { "s".to_owned() } else { format!("{per_seconds}s") };
    match burst {
        Some(burst) if burst != count => format!("{count}/{per}, {burst} at once"),
        _ => format!("{count}/{per}"),
    }
}

// Shows the keys as they stand, and does nothing to them.
async fn rehearse(ids: &[KeyId], api: &Api, output: &Output) -> Result<Outcome> {
    let keys = api.gather::<KeyView>(&Request::get("/admin/keys"), None, usize::MAX).await?.items;
    let each = Each::of("key", ids, async |id| {
        let key = keys.iter().find(|key| key.key_id == *id).cloned();
        key.ok_or_else(|| Failure::NotFound("there is no such key".into()).into())
    });
    let each = each.await;
    let good = each.done.iter().filter(|key| key.revoked_at.is_none()).count();
    let outcome = each.end(output, |keys| described(keys, Timestamp::now()))?;
    output.note(&format!("dry run: {} would be revoked", words(good)));
    Ok(outcome)
}

// One that is not known leaves the others standing.
async fn revoke(ids: &[KeyId], consent: Consent, api: &Api, output: &Output) -> Result<Outcome> {
    consent.confirm(&format!("{} would be revoked for good.", words(ids.len())))?;
    let each = Each::of("key", ids, async |key_id| {
        api.tell(Request::delete(format!("/admin/keys/{key_id}"))).await?;
        Ok(Revoked { key_id: key_id.clone() })
    });
    each.await.end(output, |revoked| table(["REVOKED"], revoked.iter().map(|key| [key.key_id.to_string()])))
}

fn words(count: usize) -> String {
    if count == 1 { "1 key".into() } else { format!("{count} keys") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_a_key_may_be_used_is_told_in_a_word() {
        let of = |count, per_seconds, burst| rate(&RateLimitView { count, per_seconds, burst });
        assert_eq!(of(5, 1.0, Some(5)), "5/s");
        assert_eq!(of(100, 60.0, None), "100/60s");
        assert_eq!(of(5, 0.5, Some(20)), "5/0.5s, 20 at once");
    }
}
