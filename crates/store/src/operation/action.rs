//! What an operation does to jobs.

use orchestrix_core::{Event, FieldError, JobState, Priority};

use crate::JobFilter;

/// What is done to each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkAction {
    /// Another chance for dead and cancelled ones.
    Retry,
    /// An end to unfinished ones.
    Cancel,
    /// This urgency for unfinished ones.
    Priority(Priority),
}

impl BulkAction {
    /// The action as APIs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Priority(_) => "priority",
        }
    }

    /// The urgency it gives, if it gives one.
    pub const fn priority(self) -> Option<Priority> {
        match self {
            Self::Priority(priority) => Some(priority),
            Self::Retry | Self::Cancel => None,
        }
    }

    /// Reads the action, which for `priority` needs one.
    pub fn parse(text: &str, priority: Option<Priority>) -> Result<Self, FieldError> {
        match (text, priority) {
            ("retry", None) => Ok(Self::Retry),
            ("cancel", None) => Ok(Self::Cancel),
            ("priority", Some(priority)) => Ok(Self::Priority(priority)),
            ("priority", None) => Err(FieldError::new("priority", "must be given")),
            ("retry" | "cancel", Some(_)) => Err(FieldError::new("priority", "goes only with the action priority")),
            _ => Err(FieldError::new("action", "must be retry, cancel or priority")),
        }
    }

    /// Whether a job in this state can take it.
    pub fn suits(self, state: JobState) -> bool {
        match self {
            Self::Retry => state.next(Event::Redrive).is_ok(),
            Self::Cancel | Self::Priority(_) => !state.is_terminal(),
        }
    }

    /// `filter` without the states that cannot take it; `None` if nothing is left.
    pub fn narrow(self, filter: &JobFilter) -> Option<JobFilter> {
        let suited = JobState::ALL.into_iter().filter(|state| self.suits(*state));
        let states: Vec<JobState> =
            suited.filter(|state| filter.states.is_empty() || filter.states.contains(state)).collect();
        (!states.is_empty()).then(|| JobFilter { states, ..filter.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_asked_only_of_jobs_that_can_take_it() {
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
    fn a_priority_is_given_just_where_it_is_meant() {
        let five = Priority::new(5).unwrap();
        for action in [BulkAction::Retry, BulkAction::Cancel, BulkAction::Priority(five)] {
            assert_eq!(BulkAction::parse(action.as_str(), action.priority()), Ok(action));
        }
        assert_eq!(BulkAction::parse("priority", None).unwrap_err().field, "priority");
        assert_eq!(BulkAction::parse("cancel", Some(five)).unwrap_err().field, "priority");
        assert_eq!(BulkAction::parse("purge", None).unwrap_err().field, "action");
    }
}
