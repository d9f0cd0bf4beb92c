//! API keys.

use orchestrix_core::{KeyId, RateLimit, Role, Tenant};
use orchestrix_store::{ApiKey, KeyDigest, KeyRecord, NewKey, Page, PageRequest, StoreError};
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::{duration, micros, millis},
    session::{Session, Transaction},
    statement::{CREATE_KEY, FIND_KEY, LIST_KEYS, REVOKE_KEY},
};

impl Transaction<'_> {
    pub(crate) fn create_key(&mut self, key: NewKey) -> Result<ApiKey> {
        let digest = key.digest;
        let key = ApiKey::of(key, self.now);
        let rate = key.rate_limit;
        let created = self.write(
            CREATE_KEY,
            params![
                key.id.as_str(),
                digest.0,
                key.name,
                key.role.as_str(),
                key.tenant.as_ref().map(Tenant::as_str),
                rate.map(RateLimit::count),
                rate.map(|rate| millis(rate.per())),
                rate.map(RateLimit::burst),
                micros(key.created_at),
                key.expires_at.map(micros),
            ],
        )?;
        if created == 0 { Err(StoreError::KeyExists(key.id).into()) } else { Ok(key) }
    }

    pub(crate) fn revoke_key(&mut self, id: &KeyId) -> Result<bool> {
        let now = micros(self.now);
        Ok(self.write(REVOKE_KEY, params![id.as_str(), now])? > 0)
    }
}

columns! {
    mod api_key of LIST_KEYS, FIND_KEY {
        id, name, role, tenant, rate_count, rate_per_ms, rate_burst, created_at, expires_at, revoked_at, digest,
    }
}

pub(crate) fn find(session: &Session<'_>, id: &KeyId) -> Result<Option<KeyRecord>> {
    session.first(FIND_KEY, [id.as_str()], |row| {
        let digest = KeyDigest(Columns(row).get(api_key::digest)?);
        Ok(KeyRecord::at(session.now, read(row)?, digest))
    })
}

pub(crate) fn list(session: &Session<'_>, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
    let after = page.cursor.as_ref().map_or("", KeyId::as_str);
    let mut items = session.all(LIST_KEYS, params![after, page.limit + 1], read)?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|key| key.id.clone()).filter(|_| more);
    Ok(Page { items, next })
}

fn read(row: &Row<'_>) -> Result<ApiKey> {
    let row = Columns(row);
    Ok(ApiKey {
        id: KeyId::trusted(row.text(api_key::id)?),
        name: row.get(api_key::name)?,
        role: row.text(api_key::role)?.parse::<Role>().map_err(|error| corrupt("role", error))?,
        tenant: row.text_or_null(api_key::tenant)?.map(Tenant::trusted),
        rate_limit: rate_limit(&row)?,
        created_at: row.time(api_key::created_at)?,
        expires_at: row.time_or_null(api_key::expires_at)?,
        revoked_at: row.time_or_null(api_key::revoked_at)?,
    })
}

fn rate_limit(row: &Columns<'_>) -> Result<Option<RateLimit>> {
    let Some(count) = row.get::<Option<u32>>(api_key::rate_count)? else { return Ok(None) };
    let per = duration(row.get(api_key::rate_per_ms)?);
    let rate = RateLimit::new(count, per, row.get(api_key::rate_burst)?);
    Ok(Some(rate.map_err(|error| corrupt("rate limit", error))?))
}
