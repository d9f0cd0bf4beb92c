//! `orchestrix audit`: who did what.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::audit::{AuditEntryView, AuditFilterRequest};
use orchestrix_core::{Tenant, Timestamp};

use crate::{
    api::{Api, Request},
    failure::Outcome,
    jobs::list,
    output::{Output, table},
    times,
};

/// Look at who did what
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what was done, newest first
    #[command(after_help = "Example:\n  orchestrix audit list --action 'PUT /admin/queues/{name}' --from 24h")]
    List {
        /// Done by this actor
        #[arg(long)]
        actor: Option<String>,
        /// Done by somebody who is bound to this tenant
        #[arg(long)]
        tenant: Option<Tenant>,
        /// This action: a method and a route, as the list shows them
        #[arg(long)]
        action: Option<String>,
        /// Done to this: the path that was asked for
        #[arg(long)]
        target: Option<String>,
        /// Done at or after this time, or as long ago as this: 2h
        #[arg(long, value_name = "TIME", value_parser = times::past_time)]
        from: Option<Timestamp>,
        /// Done before this time, or longer ago than this: 2h
        #[arg(long, value_name = "TIME", value_parser = times::past_time)]
        to: Option<Timestamp>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = list::limit())]
        limit: usize,
        /// Go on after this entry, as the previous list said
        #[arg(long, value_name = "SEQ")]
        cursor: Option<i64>,
    },
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    let Command::List { actor, tenant, action, target, from, to, limit, cursor } = command;
    let question = AuditFilterRequest { actor, tenant: tenant.map(Into::into), action, target, from, to };
    let list = Request::get("/admin/audit").asking(&question)?;
    let page = api.gather(&list, cursor.map(|seq| seq.to_string()), limit).await?;
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
                entry.detail.as_ref().map_or_else(|| "-".into(), |detail| brief(&detail.to_string())),
                or_none(&entry.outcome),
                entry.request_id.clone(),
            ]
        };
        let header = ["SEQ", "AT", "ACTOR", "ACTION", "TARGET", "DETAIL", "OUTCOME", "REQUEST"];
        table(header, entries.iter().map(row))
    })?;
    Ok(Outcome::DONE)
}

// A redrive may name a thousand jobs; JSON has them all.
fn brief(detail: &str) -> String {
    const SHOWN: usize = 60;
    match detail.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &detail[..end]),
        None => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_particulars_are_cut_between_letters() {
        assert_eq!(brief(r#"{"paused":true}"#), r#"{"paused":true}"#);
        assert_eq!(brief(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(brief(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
