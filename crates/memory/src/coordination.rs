//! Nodes and leadership.

use std::{collections::BTreeMap, ops::Bound, time::Duration};

use orchestrix_core::{NodeName, Timestamp};

use orchestrix_store::{
    Epoch, Leadership, NodeInfo, NodeStatus, Page, PageRequest, Result,
    clock::{earlier, later, until},
    housekeeping::{MAX_SWEEP, check_limit},
};

/// The nodes, the epoch, and the leader with the end of its term.
#[derive(Debug, Default)]
pub(crate) struct Coordination {
    nodes: BTreeMap<NodeName, NodeStatus>,
    epoch: i64,
    leader: Option<(NodeName, Timestamp)>,
}

impl Coordination {
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    pub(crate) fn heartbeat(&mut self, info: &NodeInfo, now: Timestamp) {
        let fresh = || NodeStatus { info: info.clone(), leads: false, started_at: now, last_seen_at: now };
        let node = self.nodes.entry(info.name.clone()).or_insert_with(fresh);
        node.info = info.clone();
        node.last_seen_at = now;
    }

    pub(crate) fn remove(&mut self, name: &NodeName) -> bool {
        self.nodes.remove(name).is_some()
    }

    pub(crate) fn forget(&mut self, silence: Duration, limit: usize, now: Timestamp) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        let since = earlier(now, silence);
        let silent = self.nodes.values().filter(|node| node.last_seen_at <= since);
        let mut silent: Vec<_> = silent.map(|node| (node.last_seen_at, node.info.name.clone())).collect();
        silent.sort_unstable();
        silent.truncate(limit);
        for (_, name) in &silent {
            self.nodes.remove(name);
        }
        Ok(silent.len())
    }

    pub(crate) fn campaign(
        &mut self,
        node: &NodeName,
        term: Duration,
        held: Option<Epoch>,
        now: Timestamp,
    ) -> Leadership {
        let current = self.leader.as_ref().filter(|(_, ends_at)| *ends_at > now);
        if let Some((leader, ends_at)) = current
            && (leader != node || held != Some(self.epoch()))
        {
            let (leader, ends_in) = (Some(leader.clone()), until(now, *ends_at));
            return Leadership::Following { leader, epoch: self.epoch(), ends_in };
        }
        self.epoch += i64::from(current.is_none());
        self.leader = Some((node.clone(), later(now, term)));
        Leadership::Leading(self.epoch())
    }

    pub(crate) fn resign(&mut self, node: &NodeName, epoch: Epoch, now: Timestamp) -> bool {
        match &mut self.leader {
            Some((leader, ends_at)) if leader == node && epoch == Epoch(self.epoch) && *ends_at > now => {
                *ends_at = now;
                true
            }
            _ => false,
        }
    }

    /// The node whose term has not ended.
    pub(crate) fn leader(&self, now: Timestamp) -> Option<&NodeName> {
        self.leader.as_ref().filter(|(_, ends_at)| *ends_at > now).map(|(leader, _)| leader)
    }

    pub(crate) fn page(&self, page: &PageRequest<NodeName>, now: Timestamp) -> Result<Page<NodeStatus, NodeName>> {
        page.validate()?;
        let from = page.cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut nodes = self.nodes.range::<NodeName, _>((from, Bound::Unbounded)).map(|(_, node)| node);
        let leader = self.leader(now);
        let leads = |name: &NodeName| leader == Some(name);
        let items: Vec<NodeStatus> = nodes
            .by_ref()
            .take(page.limit)
            .map(|node| NodeStatus { leads: leads(&node.info.name), ..node.clone() })
            .collect();
        let next = nodes.next().and_then(|_| items.last()).map(|node| node.info.name.clone());
        Ok(Page { items, next })
    }
}
