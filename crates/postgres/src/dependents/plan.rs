//! What one step writes for the open dependencies that it read.

use std::collections::{BTreeMap, HashMap, HashSet};

use orchestrix_core::JobId;
use orchestrix_store::Result;
use tokio_postgres::Row;

use super::{StepScope, cancellation};
use crate::settle::GuardedTransition;

/// A row of `open_dependencies.sql`.
#[derive(Debug, Clone)]
pub(super) struct OpenDependency {
    /// 0 if the parent has finished. Else the parent is unfinished, and a dependency one level above cancels it.
    level: i32,
    parent: JobId,
    pub(super) child: JobId,
    /// Whether the child has finished.
    gone: bool,
    /// Whether the parent's failure holds the child.
    holds: bool,
    /// The transition of a child that the parent's failure cancels.
    cancel: Option<GuardedTransition>,
}

impl OpenDependency {
    pub(super) fn read(row: &Row) -> Result<Self> {
        let child = JobId::from_uuid(row.get("child"));
        Ok(Self {
            level: row.get("level"),
            parent: JobId::from_uuid(row.get("parent")),
            child,
            gone: row.get::<_, Option<&str>>("state").is_none(),
            holds: row.get("holds"),
            cancel: if row.get("cancels") { Some(cancellation(child, row)?) } else { None },
        })
    }

    pub(super) const fn cancels(&self) -> bool {
        self.cancel.is_some()
    }
}

/// The writes of one step.
#[derive(Debug, Default)]
pub(super) struct StepPlan {
    /// Jobs to cancel. They are unfinished, and a dependency in `met` on a failed parent cancels each.
    pub(super) cancelled: Vec<GuardedTransition>,
    /// Dependencies to mark as met, as child and parent, with whether the child is held.
    pub(super) met: BTreeMap<(JobId, JobId), bool>,
    /// Parents that may have more open dependencies after this step. Empty if the scope is all parents.
    pub(super) left: Vec<JobId>,
}

impl StepPlan {
    /// Plans a step. With `locked`, dependencies of other unfinished jobs stay open.
    pub(super) fn new(mut open: Vec<OpenDependency>, scope: StepScope<'_>, locked: Option<&HashSet<JobId>>) -> Self {
        // Parents before their children.
        open.sort_by_key(|dependency| dependency.level);
        let is_full = open.len() >= scope.limit;
        let deepest = open.last().map_or(0, |dependency| dependency.level);
        let mut cancelled: HashMap<JobId, GuardedTransition> = HashMap::new();
        let mut taken: HashMap<JobId, usize> = HashMap::new();
        let (mut met, mut left) = (BTreeMap::new(), HashSet::new());
        for OpenDependency { level, parent, child, gone, holds, cancel } in open {
            if level == 0 {
                let n = taken.entry(parent).or_default();
                *n += 1;
                if *n >= scope.limit_per_parent {
                    left.insert(parent);
                }
            } else if !cancelled.contains_key(&parent) {
                continue;
            }
            if !gone && locked.is_some_and(|locked| !locked.contains(&child)) {
                left.insert(parent);
                continue;
            }
            if let Some(cancel) = cancel {
                cancelled.insert(child, cancel);
                // The limit cut the deepest level short: its parents, one level above, and its children may have more.
                if is_full && level + 1 >= deepest {
                    left.insert(child);
                }
            }
            met.insert((child, parent), holds);
        }
        if is_full && deepest == 0 {
            left.extend(scope.parents.unwrap_or_default());
        }
        if scope.parents.is_none() {
            left.clear();
        }
        Self { cancelled: cancelled.into_values().collect(), met, left: left.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::JobState;
    use uuid::Uuid;

    use super::*;

    fn id(n: u128) -> JobId {
        JobId::from_uuid(Uuid::from_u128(n))
    }

    fn scope(limit: usize, parents: &[JobId]) -> StepScope<'_> {
        StepScope { limit, limit_per_parent: limit, parents: Some(parents) }
    }

    fn plain(parent: u128, child: u128) -> OpenDependency {
        OpenDependency { level: 0, parent: id(parent), child: id(child), gone: false, holds: false, cancel: None }
    }

    fn cancels(level: i32, parent: u128, child: u128) -> OpenDependency {
        let cancel = GuardedTransition::cancel_waiting(id(child), JobState::Blocked, 0, 0, 0, "dependency_failed");
        OpenDependency { level, cancel: Some(cancel), ..plain(parent, child) }
    }

    /// The numbers of the cancelled jobs, of the met dependencies, and of the parents that are left, in order.
    fn numbers(plan: &StepPlan) -> (Vec<u128>, Vec<(u128, u128)>, Vec<u128>) {
        let number = |id: &JobId| id.as_uuid().as_u128();
        let mut cancelled: Vec<u128> = plan.cancelled.iter().map(|cancel| number(&cancel.id())).collect();
        cancelled.sort_unstable();
        let mut left: Vec<u128> = plan.left.iter().map(number).collect();
        left.sort_unstable();
        (cancelled, plan.met.keys().map(|(child, parent)| (number(child), number(parent))).collect(), left)
    }

    #[test]
    fn a_whole_chain_is_cancelled_in_one_step() {
        let open = vec![cancels(0, 1, 2), cancels(1, 2, 3), cancels(2, 3, 4)];
        let locked = HashSet::from([id(2), id(3), id(4)]);
        let plan = StepPlan::new(open, scope(100, &[id(1)]), Some(&locked));
        assert_eq!(numbers(&plan), (vec![2, 3, 4], vec![(2, 1), (3, 2), (4, 3)], vec![]));
    }

    #[test]
    fn a_job_that_is_not_locked_is_not_cancelled_and_neither_are_its_dependents() {
        let open = vec![cancels(0, 1, 2), cancels(1, 2, 3), cancels(2, 3, 4), cancels(0, 1, 5)];
        let locked = HashSet::from([id(2), id(4), id(5)]);
        let plan = StepPlan::new(open, scope(100, &[id(1)]), Some(&locked));
        assert_eq!(numbers(&plan), (vec![2, 5], vec![(2, 1), (5, 1)], vec![2]));
    }

    #[test]
    fn a_job_with_two_cancelled_parents_is_cancelled_once() {
        let open = vec![cancels(0, 1, 2), cancels(0, 1, 3), cancels(1, 2, 4), cancels(1, 3, 4)];
        let locked = HashSet::from([id(2), id(3), id(4)]);
        let plan = StepPlan::new(open, scope(100, &[id(1)]), Some(&locked));
        assert_eq!(numbers(&plan), (vec![2, 3, 4], vec![(2, 1), (3, 1), (4, 2), (4, 3)], vec![]));
    }

    #[test]
    fn a_full_step_leaves_the_parents_of_its_two_deepest_levels() {
        let open = vec![cancels(0, 1, 2), cancels(1, 2, 3), cancels(2, 3, 4), cancels(3, 4, 5)];
        let locked = HashSet::from([id(2), id(3), id(4), id(5)]);
        let plan = StepPlan::new(open, scope(4, &[id(1)]), Some(&locked));
        assert_eq!(numbers(&plan).2, [4, 5]);
        let wide = StepPlan::new(vec![plain(1, 2), plain(1, 3)], scope(2, &[id(1), id(9)]), None);
        assert_eq!(numbers(&wide), (vec![], vec![(2, 1), (3, 1)], vec![1, 9]), "the second was not read at all");
    }

    #[test]
    fn a_parent_with_as_many_dependencies_as_its_share_is_left() {
        let parents = [id(1), id(2)];
        let scope = StepScope { limit: 10, limit_per_parent: 2, parents: Some(&parents) };
        let plan = StepPlan::new(vec![plain(1, 3), plain(1, 4), plain(2, 5)], scope, None);
        assert_eq!(numbers(&plan).2, [1]);
    }
}
