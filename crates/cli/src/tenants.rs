//! `orchestrix tenants`: lists tenants and sets their weights.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::tenant::{TenantRequest, TenantView};
use orchestrix_core::{Tenant, Weight};

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    output::{Output, table},
};

/// List tenants and set their shares
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tenants whose settings were set; all others have weight 1
    #[command(after_help = "Example:\n  orchestrix tenants list")]
    List,
    /// Change the settings of a tenant
    #[command(after_help = "Example:\n  orchestrix tenants set acme --weight 3")]
    Set {
        /// The tenant
        #[arg(value_name = "TENANT")]
        tenant: Tenant,
        /// Give the tenant this share among the tenants of the same priority: 1 (the default) to 1000
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=Weight::MAX))]
        weight: u16,
    },
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::List => list(api, output).await,
        Command::Set { tenant, weight } => set(&tenant, &TenantRequest { weight: Some(weight) }, api, output).await,
    }
}

async fn list(api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let tenants = api.collect_pages(&Request::get("/admin/tenants"), None, usize::MAX).await?;
    output.page(&tenants, describe)?;
    Ok(ExitStatus::SUCCESS)
}

async fn set(name: &Tenant, settings: &TenantRequest, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let tenant: TenantView = api.call(Request::put(format!("/admin/tenants/{name}")).json(settings)?).await?;
    output.item(&tenant, || describe(std::slice::from_ref(&tenant)))?;
    Ok(ExitStatus::SUCCESS)
}

fn describe(tenants: &[TenantView]) -> String {
    table(["TENANT", "WEIGHT"], tenants.iter().map(|tenant| [tenant.name.to_string(), tenant.weight.to_string()]))
}
