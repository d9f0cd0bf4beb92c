//! `orchestrix audit`: lists audit entries.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::audit::{AuditEntryView, AuditFilterRequest};
use orchestrix_core::{Tenant, Timestamp};

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    jobs::list,
    output::{Output, table},
    times,
};

/// Show the audit log
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List audit entries, newest first
    #[command(after_help = "Example:\n  orchestrix audit list --action 'PUT /admin/queues/{name}' --from 24h")]
    List {
        /// Only entries of this actor
        #[arg(long)]
        actor: Option<String>,
        /// Only entries of actors that are bound to this tenant
        #[arg(long)]
        tenant: Option<Tenant>,
        /// Only this action: a method and a route, as the list shows them
        #[arg(long)]
        action: Option<String>,
        /// Only entries about this target: the requested path
        #[arg(long)]
        target: Option<String>,
        /// Only entries at or after this time, or within this duration: 2h
        #[arg(long, value_name = "TIME", value_parser = times::past_time)]
        from: Option<Timestamp>,
        /// Only entries before this time, or older than this duration: 2h
        #[arg(long, value_name = "TIME", value_parser = times::past_time)]
        to: Option<Timestamp>,
        /// List at most this many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = list::limit())]
        limit: usize,
        /// Continue after this entry: the cursor of the previous list
        #[arg(long, value_name = "SEQ")]
        cursor: Option<i64>,
    },
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Command::List { actor, tenant, action, target, from, to, limit, cursor } = command;
    let params = AuditFilterRequest { actor, tenant: tenant.map(Into::into), action, target, from, to };
    let list = Request::get("/admin/audit").query_params(&params)?;
    let page = api.collect_pages(&list, cursor.map(|seq| seq.to_string()), limit).await?;
    let now = Timestamp::now();
    output.page(&page, |entries| {
        let row = |entry: &AuditEntryView| {
            let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
            [
                entry.seq.to_string(),
                times::relative(entry.at, now),
                entry.actor.clone(),
                entry.action.clone(),
                or_none(&entry.target),
                entry.detail.as_ref().map_or_else(|| "-".into(), |detail| truncate(&detail.to_string())),
                or_none(&entry.outcome),
                entry.request_id.clone(),
            ]
        };
        let header = ["SEQ", "AT", "ACTOR", "ACTION", "TARGET", "DETAIL", "OUTCOME", "REQUEST"];
        table(header, entries.iter().map(row))
    })?;
    Ok(ExitStatus::SUCCESS)
}

// The detail of a redrive may hold a thousand ids; the JSON output shows all of them.
fn truncate(detail: &str) -> String {
    const MAX_CHARS: usize = 60;
    match detail.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &detail[..end]),
        None => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_detail_is_truncated_at_a_character_boundary() {
        assert_eq!(truncate(r#"{"paused":true}"#), r#"{"paused":true}"#);
        assert_eq!(truncate(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(truncate(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
