//! The record of who did what. An entry is durable before the deed, and is told afterwards how it went: one without an
//! outcome is a deed of which nobody knows whether it was done.

use orchestrix_core::{FieldError, Invalid, Tenant, Timestamp};

use crate::clock::cut;

/// What somebody is about to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// Who.
    pub actor: String,
    /// The tenant that they are bound to.
    pub tenant: Option<Tenant>,
    /// What, in a word.
    pub action: String,
    /// To what.
    pub target: Option<String>,
    /// The particulars, as JSON.
    pub detail: Option<String>,
    /// The request that asked for it.
    pub request_id: String,
}

impl NewAuditEntry {
    /// The longest text of anything but the particulars, in bytes.
    pub const MAX_TEXT: usize = 512;
    /// The longest particulars, in bytes: the names of as many jobs as one request may name, a thousand, fit.
    pub const MAX_DETAIL: usize = 48 * 1024;

    /// Checks the limits; names every bad field.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut errors = Vec::new();
        let texts = [("actor", Some(&self.actor)), ("action", Some(&self.action)), ("target", self.target.as_ref())];
        for (field, text) in texts.into_iter().chain([("requestId", Some(&self.request_id))]) {
            errors.extend(text.and_then(|text| check_text(field, text).err()));
        }
        if self.detail.as_ref().is_some_and(|text| text.len() > Self::MAX_DETAIL || text.contains('\0')) {
            let rule = format!("must have at most {} bytes, none of them zero", Self::MAX_DETAIL);
            errors.push(FieldError::new("detail", rule));
        }
        Invalid::check(errors)
    }
}

/// Checks how a deed went, in a word or a few.
pub fn check_outcome(outcome: &str) -> Result<(), FieldError> {
    check_text("outcome", outcome)
}

fn check_text(field: &str, text: &str) -> Result<(), FieldError> {
    if (1..=NewAuditEntry::MAX_TEXT).contains(&text.len()) && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(FieldError::new(field, format!("must have 1 to {} bytes and no control characters", NewAuditEntry::MAX_TEXT)))
}

/// What somebody did, or was about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number; they only rise.
    pub seq: i64,
    /// When it was begun.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// The tenant that they are bound to.
    pub tenant: Option<Tenant>,
    /// What, in a word.
    pub action: String,
    /// To what.
    pub target: Option<String>,
    /// The particulars, as JSON.
    pub detail: Option<String>,
    /// The request that asked for it.
    pub request_id: String,
    /// How it went; `None` if nobody said.
    pub outcome: Option<String>,
}

/// Which entries; every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// By this actor.
    pub actor: Option<String>,
    /// By an actor that is bound to this tenant.
    pub tenant: Option<Tenant>,
    /// This action.
    pub action: Option<String>,
    /// To this.
    pub target: Option<String>,
    /// At or after.
    pub from: Option<Timestamp>,
    /// Before.
    pub to: Option<Timestamp>,
}

impl AuditFilter {
    /// Whether every part that is set matches.
    pub fn matches(&self, entry: &AuditEntry) -> bool {
        self.actor.as_ref().is_none_or(|actor| *actor == entry.actor)
            && self.tenant.as_ref().is_none_or(|tenant| Some(tenant) == entry.tenant.as_ref())
            && self.action.as_ref().is_none_or(|action| *action == entry.action)
            && self.target.as_ref().is_none_or(|target| Some(target) == entry.target.as_ref())
            && self.from.is_none_or(|from| entry.at >= from)
            && self.to.is_none_or(|to| entry.at < to)
    }
    /// Entries that match and come after the one at `cursor`, in the order of lists, are before this place: the time it gives, and of entries
    /// of that very time the number. Lists go by time first, so that a stretch of it is found however much has happened since; numbers
    /// decide between entries of one moment.
    pub fn before(&self, cursor: Option<(Timestamp, i64)>) -> (Timestamp, i64) {
        let end = (self.to.map_or(Timestamp::MAX, ceiling), i64::MIN);
        cursor.map_or(end, |cursor| cursor.min(end))
    }

    /// Whether stores find what matches by nothing but tenant and time, and so without looking at what does not.
    pub const fn is_exact(&self) -> bool {
        self.actor.is_none() && self.action.is_none() && self.target.is_none()
    }
}

// Up to whole microseconds, which entries have.
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
    fn a_list_goes_on_from_its_cursor_or_the_end_of_the_time_asked_for_whichever_is_earlier() {
        let time = |micros| Timestamp::from_microsecond(micros).unwrap();
        let all = AuditFilter::default();
        assert_eq!(all.before(None), (Timestamp::MAX, i64::MIN));
        assert_eq!(all.before(Some((time(7), 3))), (time(7), 3));
        let to = AuditFilter { to: Some(Timestamp::from_nanosecond(5_001).unwrap()), ..all };
        assert_eq!(to.before(None), (time(6), i64::MIN), "an entry of the fifth microsecond is before it");
        assert_eq!(to.before(Some((time(7), 3))), (time(6), i64::MIN));
        assert_eq!(to.before(Some((time(5), 3))), (time(5), 3));
    }
}
