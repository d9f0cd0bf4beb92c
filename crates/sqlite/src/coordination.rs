//! Who leads, and who is there.

use std::time::Duration;

use orchestrix_core::{NodeName, Timestamp};
use orchestrix_store::{
    Epoch, Fence, Leadership, NodeInfo, NodeStatus, Page, PageRequest, SweepTimes,
    clock::{earlier, later, until},
};
use rusqlite::params;

use crate::{
    error::{Result, corrupt},
    fire,
    row::{Columns, micros},
    session::{Session, Transaction},
    statement::{
        FORGET_NODES, HEARTBEAT_NODE, LEAD, LEADER, NEXT_DUE, NEXT_EXPIRY, NEXT_LEASE, NEXT_SETTLED, NEXT_TIMEOUT,
        NODES, REMOVE_NODE, Statement,
    },
};

/// Whose term it is.
struct Term {
    epoch: Epoch,
    node: Option<NodeName>,
    ends_at: Timestamp,
}

fn term(session: &Session<'_>) -> Result<Term> {
    let term = session.first(LEADER, (), |row| {
        let row = Columns(row);
        let node = row.text_or_null(1)?.map(NodeName::trusted);
        Ok(Term { epoch: Epoch(row.get(0)?), node, ends_at: row.time(2)? })
    })?;
    Ok(term.ok_or_else(|| corrupt("leader", "there is no row"))?)
}

/// The node whose term runs.
pub(crate) fn leader(session: &Session<'_>) -> Result<Option<NodeName>> {
    let Term { node, ends_at, .. } = term(session)?;
    Ok(node.filter(|_| ends_at > session.now))
}

/// How often leadership has changed hands.
pub(crate) fn epoch(session: &Session<'_>) -> Result<Epoch> {
    Ok(term(session)?.epoch)
}

impl Transaction<'_> {
    /// Refuses what is done in the name of a leader that was deposed. Nobody can take over before the commit.
    pub(crate) fn check(&self, fence: Fence) -> Result<()> {
        if fence.epoch().is_some() {
            fence.check(term(self)?.epoch)?;
        }
        Ok(())
    }

    pub(crate) fn campaign(&mut self, node: &NodeName, length: Duration, held: Option<Epoch>) -> Result<Leadership> {
        let Term { epoch, node: leader, ends_at } = term(self)?;
        let runs = ends_at > self.now;
        if runs && (leader.as_ref() != Some(node) || held != Some(epoch)) {
            return Ok(Leadership::Following { leader, epoch, ends_in: until(self.now, ends_at) });
        }
        let epoch = Epoch(epoch.0 + i64::from(!runs));
        let ends_at = micros(later(self.now, length));
        self.write_one(LEAD, params![epoch.0, node.as_str(), ends_at])?;
        Ok(Leadership::Leading(epoch))
    }

    pub(crate) fn resign(&mut self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        let current = term(self)?;
        let own = current.epoch == epoch && current.node.as_ref() == Some(node) && current.ends_at > self.now;
        if own {
            let now = micros(self.now);
            self.write_one(LEAD, params![epoch.0, node.as_str(), now])?;
        }
        Ok(own)
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

pub(crate) fn nodes(session: &Session<'_>, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
    let after = page.cursor.as_ref().map_or("", NodeName::as_str);
    let params = params![after, page.limit + 1, micros(session.now)];
    let mut items = session.all(NODES, params, |row| {
        let row = Columns(row);
        let roles = serde_json::from_str(row.text(2)?).map_err(|error| corrupt("roles", error))?;
        Ok(NodeStatus {
            info: NodeInfo { name: NodeName::trusted(row.text(0)?), address: row.get(1)?, roles },
            started_at: row.time(3)?,
            last_seen_at: row.time(4)?,
            leads: row.get(5)?,
        })
    })?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|node| node.info.name.clone()).filter(|_| more);
    Ok(Page { items, next })
}

/// A file has always been up; what was away is whoever could not read it.
pub(crate) fn agenda(session: &Session<'_>) -> Result<SweepTimes> {
    let next = |statement: Statement| -> Result<Option<Duration>> {
        let time = session.first(statement, (), |row| Columns(row).time(0))?;
        Ok(time.map(|time| until(session.now, time)))
    };
    Ok(SweepTimes {
        promote: next(NEXT_DUE)?,
        expire: next(NEXT_EXPIRY)?,
        reap: next(NEXT_LEASE)?,
        time_out: next(NEXT_TIMEOUT)?,
        unblock: session.first(NEXT_SETTLED, (), |_| Ok(Duration::ZERO))?,
        fire: fire::next_in(session)?,
        up: None,
    })
}
