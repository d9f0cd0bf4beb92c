//! Leadership, nodes, and when the next sweeps are due.

use std::time::Duration;

use orchestrix_core::{NodeName, Timestamp};
use orchestrix_store::{
    Epoch, Fence, Leadership, NodeInfo, NodeStatus, Page, PageRequest, SweepTimes,
    clock::{earlier, later, until},
};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    fire,
    row::micros,
    session::{Session, Transaction},
    statement::{
        FORGET_NODES, HEARTBEAT_NODE, LEADER_TERM, LIST_NODES, NEXT_EXPIRY, NEXT_LEASE_EXPIRY, NEXT_PROMOTION,
        NEXT_SETTLED, NEXT_TIMEOUT, REMOVE_NODE, SET_TERM, Statement,
    },
};

columns! {
    mod term_columns of LEADER_TERM { epoch, node, ends_at }
}

/// The current or latest term.
struct Term {
    epoch: Epoch,
    node: Option<NodeName>,
    ends_at: Timestamp,
}

fn term(session: &Session<'_>) -> Result<Term> {
    let term = session.first(LEADER_TERM, (), |row| {
        let row = Columns(row);
        Ok(Term {
            epoch: Epoch(row.get(term_columns::epoch)?),
            node: row.text_or_null(term_columns::node)?.map(NodeName::trusted),
            ends_at: row.time(term_columns::ends_at)?,
        })
    })?;
    Ok(term.ok_or_else(|| corrupt("leader", "the row is missing"))?)
}

/// The node that leads now.
pub(crate) fn leader(session: &Session<'_>) -> Result<Option<NodeName>> {
    let Term { node, ends_at, .. } = term(session)?;
    Ok(node.filter(|_| ends_at > session.now))
}

/// The epoch of the current or latest term.
pub(crate) fn epoch(session: &Session<'_>) -> Result<Epoch> {
    Ok(term(session)?.epoch)
}

impl Transaction<'_> {
    /// Refuses a write of a deposed leader. No other node can take over before the commit.
    pub(crate) fn check_fence(&self, fence: Fence) -> Result<()> {
        if fence.epoch().is_some() {
            fence.check(term(self)?.epoch)?;
        }
        Ok(())
    }

    pub(crate) fn campaign_for_leadership(
        &mut self,
        node: &NodeName,
        length: Duration,
        held: Option<Epoch>,
    ) -> Result<Leadership> {
        let Term { epoch, node: leader, ends_at } = term(self)?;
        let runs = ends_at > self.now;
        if runs && (leader.as_ref() != Some(node) || held != Some(epoch)) {
            return Ok(Leadership::Following { leader, epoch, ends_in: until(self.now, ends_at) });
        }
        let epoch = Epoch(epoch.0 + i64::from(!runs));
        let ends_at = micros(later(self.now, length));
        self.write_one(SET_TERM, params![epoch.0, node.as_str(), ends_at])?;
        Ok(Leadership::Leading(epoch))
    }

    pub(crate) fn resign_leadership(&mut self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        let current = term(self)?;
        let leads = current.epoch == epoch && current.node.as_ref() == Some(node) && current.ends_at > self.now;
        if leads {
            let now = micros(self.now);
            self.write_one(SET_TERM, params![epoch.0, node.as_str(), now])?;
        }
        Ok(leads)
    }

    pub(crate) fn heartbeat_node(&mut self, node: &NodeInfo) -> Result<()> {
        let roles = serde_json::to_string(&node.roles).map_err(|error| corrupt("roles", error))?;
        let now = micros(self.now);
        self.write_one(HEARTBEAT_NODE, params![node.name.as_str(), node.address, roles, now])
    }

    pub(crate) fn remove_node(&mut self, name: &NodeName) -> Result<bool> {
        Ok(self.write(REMOVE_NODE, [name.as_str()])? > 0)
    }

    pub(crate) fn forget_nodes(&mut self, silence: Duration, limit: usize) -> Result<usize> {
        let since = micros(earlier(self.now, silence));
        self.write(FORGET_NODES, params![since, limit])
    }
}

columns! {
    mod node_columns of LIST_NODES { name, address, roles, started_at, last_seen_at, leads }
}

pub(crate) fn list_nodes(session: &Session<'_>, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
    let after = page.cursor.as_ref().map_or("", NodeName::as_str);
    let params = params![after, page.limit + 1, micros(session.now)];
    let mut items = session.all(LIST_NODES, params, |row| {
        let row = Columns(row);
        let roles = serde_json::from_str(row.text(node_columns::roles)?).map_err(|error| corrupt("roles", error))?;
        Ok(NodeStatus {
            info: NodeInfo {
                name: NodeName::trusted(row.text(node_columns::name)?),
                address: row.get(node_columns::address)?,
                roles,
            },
            started_at: row.time(node_columns::started_at)?,
            last_seen_at: row.time(node_columns::last_seen_at)?,
            leads: row.get(node_columns::leads)?,
        })
    })?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|node| node.info.name.clone()).filter(|_| more);
    Ok(Page { items, next })
}

/// When each sweep is due next. `up` stays empty: a file has no uptime.
pub(crate) fn next_sweep_times(session: &Session<'_>) -> Result<SweepTimes> {
    let next = |statement: Statement| -> Result<Option<Duration>> {
        let time = session.first(statement, (), |row| Columns(row).time(0))?;
        Ok(time.map(|time| until(session.now, time)))
    };
    Ok(SweepTimes {
        promote: next(NEXT_PROMOTION)?,
        expire: next(NEXT_EXPIRY)?,
        reap: next(NEXT_LEASE_EXPIRY)?,
        time_out: next(NEXT_TIMEOUT)?,
        unblock: session.first(NEXT_SETTLED, (), |_| Ok(Duration::ZERO))?,
        fire: fire::next_in(session)?,
        up: None,
    })
}
