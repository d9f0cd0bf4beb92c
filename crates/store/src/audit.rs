//! The audit log: which actor performed which action.
//!
//! An entry is durable before its action is performed and gets its outcome afterwards. For an entry without an
//! outcome it is unknown whether the action was performed.

use orchestrix_core::{FieldError, Invalid, Tenant, Timestamp};

use crate::clock::cut;

/// An action that is about to be performed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// The actor, such as an API key.
    pub actor: String,
    /// The tenant that the actor is bound to.
    pub tenant: Option<Tenant>,
    /// The action, such as `job.cancel`.
    pub action: String,
    /// What the action applies to.
    pub target: Option<String>,
    /// Details, as JSON.
    pub detail: Option<String>,
    /// The id of the request.
    pub request_id: String,
}

impl NewAuditEntry {
    /// The greatest length of every field except the details, in bytes.
    pub const MAX_TEXT: usize = 512;
    /// The greatest length of the details, in bytes: enough for the ids of a thousand jobs, the most in one request.
    pub const MAX_DETAIL: usize = 48 * 1024;

    /// Validates the limits. Names every bad field.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut errors = Vec::new();
        let texts = [("actor", Some(&self.actor)), ("action", Some(&self.action)), ("target", self.target.as_ref())];
        for (field, text) in texts.into_iter().chain([("requestId", Some(&self.request_id))]) {
            errors.extend(text.and_then(|text| check_text(field, text).err()));
        }
        if self.detail.as_ref().is_some_and(|text| text.len() > Self::MAX_DETAIL || text.contains('\0')) {
            let rule = format!("must have at most {} bytes and no NUL", Self::MAX_DETAIL);
            errors.push(FieldError::new("detail", rule));
        }
        Invalid::check(errors)
    }
}

/// Validates the outcome of an action.
pub fn check_outcome(outcome: &str) -> Result<(), FieldError> {
    check_text("outcome", outcome)
}

fn check_text(field: &str, text: &str) -> Result<(), FieldError> {
    if (1..=NewAuditEntry::MAX_TEXT).contains(&text.len()) && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(FieldError::new(field, format!("must have 1 to {} bytes and no control characters", NewAuditEntry::MAX_TEXT)))
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The sequence number. Numbers only increase.
    pub seq: i64,
    /// When the action began.
    pub at: Timestamp,
    /// The actor, such as an API key.
    pub actor: String,
    /// The tenant that the actor is bound to.
    pub tenant: Option<Tenant>,
    /// The action, such as `job.cancel`.
    pub action: String,
    /// What the action applies to.
    pub target: Option<String>,
    /// Details, as JSON.
    pub detail: Option<String>,
    /// The id of the request.
    pub request_id: String,
    /// The outcome; `None` if it was never recorded.
    pub outcome: Option<String>,
}

/// A filter for audit entries. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The actor.
    pub actor: Option<String>,
    /// The tenant that the actor is bound to.
    pub tenant: Option<Tenant>,
    /// The action.
    pub action: Option<String>,
    /// The target.
    pub target: Option<String>,
    /// The earliest time, inclusive.
    pub from: Option<Timestamp>,
    /// The latest time, exclusive.
    pub to: Option<Timestamp>,
}

impl AuditFilter {
    /// Whether every field that is set matches.
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        self.actor.as_ref().is_none_or(|actor| *actor == entry.actor)
            && self.tenant.as_ref().is_none_or(|tenant| Some(tenant) == entry.tenant.as_ref())
            && self.action.as_ref().is_none_or(|action| *action == entry.action)
            && self.target.as_ref().is_none_or(|target| Some(target) == entry.target.as_ref())
            && self.from.is_none_or(|from| entry.at >= from)
            && self.to.is_none_or(|to| entry.at < to)
    }

    /// The exclusive upper bound, as (time, sequence number), of entries that match and follow `cursor` in a list.
    ///
    /// Lists are ordered by time, newest first, so that a range of time is found without scanning newer entries.
    /// The sequence number orders entries of the same time.
    pub fn before(&self, cursor: Option<(Timestamp, i64)>) -> (Timestamp, i64) {
        let end = (self.to.map_or(Timestamp::MAX, ceiling), i64::MIN);
        cursor.map_or(end, |cursor| cursor.min(end))
    }

    /// Whether the filter uses only tenant and time, which stores have indexed, so that no other entries are scanned.
    pub const fn is_exact(&self) -> bool {
        self.actor.is_none() && self.action.is_none() && self.target.is_none()
    }
}

// Rounds up to whole microseconds, the precision of entries.
fn ceiling(time: Timestamp) -> Timestamp {
    let floor = cut(time);
    if floor == time {
        return floor;
    }
    Timestamp::from_microsecond(floor.as_microsecond().saturating_add(1)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_continues_from_its_cursor_or_the_end_of_its_range_whichever_is_earlier() {
        let time = |micros| Timestamp::from_microsecond(micros).unwrap();
        let all = AuditFilter::default();
        assert_eq!(all.before(None), (Timestamp::MAX, i64::MIN));
        assert_eq!(all.before(Some((time(7), 3))), (time(7), 3));
        let to = AuditFilter { to: Some(Timestamp::from_nanosecond(5_001).unwrap()), ..all };
        assert_eq!(to.before(None), (time(6), i64::MIN), "an entry of the fifth microsecond is included");
        assert_eq!(to.before(Some((time(7), 3))), (time(6), i64::MIN));
        assert_eq!(to.before(Some((time(5), 3))), (time(5), 3));
    }
}
