//! API keys, as rows.

use orchestrix_core::{KeyId, RateLimit, Role, Tenant};
use orchestrix_store::{ApiKey, KeyDigest, KeyRecord, NewKey, Page, PageRequest, Result, StoreError};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    job_columns::millis,
    row::{corrupt, duration},
    statement::{CREATE_KEY, FIND_KEY, LIST_KEYS, REVOKE_KEY},
};

pub(crate) async fn create(store: &PostgresStore, key: &NewKey) -> Result<ApiKey> {
    key.validate()?;
    let rate = key.rate_limit;
    let rows = store
        .database()
        .query(
            &CREATE_KEY,
            &[
                &key.id.as_str(),
                &key.digest.0.as_slice(),
                &key.name,
                &key.role.as_str(),
                &key.tenant.as_ref().map(Tenant::as_str),
                &rate.map(|rate| i64::from(rate.count())),
                &rate.map(|rate| millis(rate.per())),
                &rate.map(|rate| i64::from(rate.burst())),
                &key.expires_at,
            ],
        )
        .await?;
    rows.first().map_or_else(|| Err(StoreError::KeyExists(key.id.clone())), read)
}

pub(crate) async fn revoke(store: &PostgresStore, id: &KeyId) -> Result<bool> {
    Ok(!store.database().query(&REVOKE_KEY, &[&id.as_str()]).await?.is_empty())
}

pub(crate) async fn find(store: &PostgresStore, id: &KeyId) -> Result<Option<KeyRecord>> {
    let rows = store.database().query(&FIND_KEY, &[&id.as_str()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let digest = row.get::<_, &[u8]>("digest").try_into().map_err(|error| corrupt("digest", error))?;
    Ok(Some(KeyRecord::at(row.get("now"), read(row)?, KeyDigest(digest))))
}

pub(crate) async fn list(store: &PostgresStore, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
    page.validate()?;
    let after = page.cursor.as_ref().map_or("", KeyId::as_str);
    let rows = store.database().query(&LIST_KEYS, &[&after, &(page.limit as i64 + 1)]).await?;
    let items: Vec<ApiKey> = rows.iter().take(page.limit).map(read).collect::<Result<_>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|key| key.id.clone())).flatten();
    Ok(Page { items, next })
}

fn read(row: &Row) -> Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId::trusted(row.get("id")),
        name: row.get("name"),
        role: row.get::<_, &str>("role").parse::<Role>().map_err(|error| corrupt("role", error))?,
        tenant: row.get::<_, Option<&str>>("tenant").map(Tenant::trusted),
        rate_limit: rate_limit(row)?,
        created_at: row.get("created_at"),
        expires_at: row.get("expires_at"),
        revoked_at: row.get("revoked_at"),
    })
}

fn rate_limit(row: &Row) -> Result<Option<RateLimit>> {
    let Some(count) = row.get::<_, Option<i64>>("rate_count") else { return Ok(None) };
    // A number out of range becomes 0, which `RateLimit::new` refuses.
    let number = |n: i64| u32::try_from(n).unwrap_or(0);
    let rate = RateLimit::new(number(count), duration(row.get("rate_per_ms")), number(row.get("rate_burst")));
    rate.map(Some).map_err(|error| corrupt("rate limit", error))
}
