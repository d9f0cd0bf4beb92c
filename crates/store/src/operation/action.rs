//! The action of a bulk operation.

use orchestrix_core::{Event, FieldError, JobState, Priority};

use crate::JobFilter;

/// What a bulk operation does to each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkAction {
    /// Retries dead and cancelled jobs.
    Retry,
    /// Cancels unfinished jobs.
    Cancel,
    /// Sets the priority of unfinished jobs.
    Priority(Priority),
}

impl BulkAction {
    /// The name that APIs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Priority(_) => "priority",
        }
    }

    /// The priority that it sets, if any.
    pub const fn priority(self) -> Option<Priority> {
        match self {
            Self::Priority(priority) => Some(priority),
            Self::Retry | Self::Cancel => None,
        }
    }

    /// Parses the action. Only `priority` takes a priority, and requires it.
    pub fn parse(text: &str, priority: Option<Priority>) -> Result<Self, FieldError> {
        match (text, priority) {
            ("retry", None) => Ok(Self::Retry),
            ("cancel", None) => Ok(Self::Cancel),
            ("priority", Some(priority)) => Ok(Self::Priority(priority)),
            ("priority", None) => Err(FieldError::new("priority", "must be given")),
            ("retry" | "cancel", Some(_)) => {
                Err(FieldError::new("priority", "is only allowed with the action priority"))
            }
            _ => Err(FieldError::new("action", "must be retry, cancel or priority")),
        }
    }

    /// Whether it applies to a job in this state.
    pub fn applies_to(self, state: JobState) -> bool {
        match self {
            Self::Retry => state.next(Event::Redrive).is_ok(),
            Self::Cancel | Self::Priority(_) => !state.is_terminal(),
        }
    }

    /// `filter` limited to states that it applies to; `None` if none are left.
    pub fn narrow(self, filter: &JobFilter) -> Option<JobFilter> {
        let applicable = JobState::ALL.into_iter().filter(|state| self.applies_to(*state));
        let states: Vec<JobState> =
            applicable.filter(|state| filter.states.is_empty() || filter.states.contains(state)).collect();
        (!states.is_empty()).then(|| JobFilter { states, ..filter.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_limited_to_states_that_the_action_applies_to() {
        let all = JobFilter::default();
        let states = |action: BulkAction, filter: &JobFilter| action.narrow(filter).map(|filter| filter.states);
        assert_eq!(states(BulkAction::Retry, &all).unwrap(), [JobState::Dead, JobState::Cancelled]);
        let some = JobFilter { states: vec![JobState::Dead, JobState::Running], ..all.clone() };
        assert_eq!(states(BulkAction::Retry, &some).unwrap(), [JobState::Dead]);
        assert_eq!(states(BulkAction::Cancel, &some).unwrap(), [JobState::Running]);
        let done = JobFilter { states: vec![JobState::Completed], ..all };
        assert_eq!(states(BulkAction::Cancel, &done), None);
    }

    #[test]
    fn only_the_action_priority_takes_a_priority() {
        let five = Priority::new(5).unwrap();
        for action in [BulkAction::Retry, BulkAction::Cancel, BulkAction::Priority(five)] {
            assert_eq!(BulkAction::parse(action.as_str(), action.priority()), Ok(action));
        }
        assert_eq!(BulkAction::parse("priority", None).unwrap_err().field, "priority");
        assert_eq!(BulkAction::parse("cancel", Some(five)).unwrap_err().field, "priority");
        assert_eq!(BulkAction::parse("purge", None).unwrap_err().field, "action");
    }
}
