//! API keys.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    ops::Bound,
};

use orchestrix_core::{KeyId, Timestamp};

use orchestrix_store::{ApiKey, KeyDigest, KeyRecord, NewKey, Page, PageRequest, Result, StoreError};

/// Keys and their digests, by id.
#[derive(Debug, Default)]
pub(crate) struct Keys(BTreeMap<KeyId, (ApiKey, KeyDigest)>);

impl Keys {
    pub(crate) fn create(&mut self, key: NewKey, now: Timestamp) -> Result<ApiKey> {
        key.validate()?;
        let digest = key.digest;
        match self.0.entry(key.id.clone()) {
            Entry::Occupied(_) => Err(StoreError::KeyExists(key.id)),
            Entry::Vacant(vacant) => Ok(vacant.insert((ApiKey::of(key, now), digest)).0.clone()),
        }
    }

    pub(crate) fn revoke(&mut self, id: &KeyId, now: Timestamp) -> bool {
        let Some((key, _)) = self.0.get_mut(id) else { return false };
        key.revoked_at.get_or_insert(now);
        true
    }

    pub(crate) fn find(&self, id: &KeyId, now: Timestamp) -> Option<KeyRecord> {
        self.0.get(id).map(|(key, digest)| KeyRecord::at(now, key.clone(), *digest))
    }

    pub(crate) fn page(&self, page: &PageRequest<KeyId>) -> Result<Page<ApiKey, KeyId>> {
        page.validate()?;
        let from = page.cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut keys = self.0.range::<KeyId, _>((from, Bound::Unbounded)).map(|(_, (key, _))| key);
        let items: Vec<ApiKey> = keys.by_ref().take(page.limit).cloned().collect();
        let next = keys.next().and_then(|_| items.last()).map(|key| key.id.clone());
        Ok(Page { items, next })
    }
}
