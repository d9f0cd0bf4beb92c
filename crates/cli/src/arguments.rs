//! The command line. Every flag can also be set by an environment variable, `ORCHESTRIX_SOME_FLAG` for `--some-flag`
//! unless it names another one, or in a file: see [`configuration`](crate::configuration).

use std::{path::PathBuf, time::Duration};

use clap::{
    ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::{FalseyValueParser, PossibleValuesParser, TypedValueParser},
};
use tracing_subscriber::filter::LevelFilter;

use crate::{
    audit, completions,
    configuration::{Configuration, template},
    dev, dlq, doctor,
    error::{self, CliError, print_stderr},
    jobs, keys, logs, migrate, nodes, operations,
    output::Format,
    queues, schedules, server, stats, tenants, times, traces, worker, workers,
};

/// A durable job queue with schedules, workers and an HTTP API
#[derive(Debug, Parser)]
#[command(name = "orchestrix", version, disable_help_subcommand = true)]
#[command(after_help = "\
Set any flag by an environment variable (--max-attempts is ORCHESTRIX_MAX_ATTEMPTS) or in ./orchestrix.toml
(`orchestrix config` prints a template).
Exit codes: 0 success, 1 failure, 2 usage error, 3 not found, 4 conflict, 5 unreachable.

Examples:
  export ORCHESTRIX_DATABASE_URL=sqlite:jobs.db
  orchestrix jobs enqueue SEND_EMAIL --payload '{\"to\": \"user@example.com\"}'
  orchestrix jobs list --server https://jobs.example.com")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Use this database: postgres://USER:PASSWORD@HOST/NAME or sqlite:PATH
    // Parsed when it is opened: an error of clap about the value would show the password.
    #[arg(long, global = true, value_name = "URL", env = "ORCHESTRIX_DATABASE_URL", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    pub(crate) database: Option<String>,

    /// Use this server instead of a database: http://HOST:PORT
    #[arg(long, global = true, value_name = "URL", env = "ORCHESTRIX_SERVER_URL", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    pub(crate) server: Option<String>,

    /// Authenticate to the server with this API key
    #[arg(long, global = true, value_name = "KEY", env = "ORCHESTRIX_API_KEY", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    api_key: Option<String>,

    /// Print a table, one JSON document, or one JSON object per line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, help_heading = GLOBAL)]
    pub(crate) output: Format,

    /// Do not apply pending migrations; fail if there are any
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_migrate: bool,

    /// Wait this long for a database or a server that does not answer
    #[arg(long, global = true, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    #[arg(help_heading = GLOBAL)]
    pub(crate) connect_timeout: Duration,

    /// Log this level and above to standard error
    #[arg(long, global = true, value_name = "LEVEL", value_parser = levels(), default_value = "warn")]
    #[arg(help_heading = GLOBAL)]
    pub(crate) log: LevelFilter,

    /// Log as text, or as one JSON object per line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, help_heading = GLOBAL)]
    pub(crate) log_format: logs::Format,

    /// Read flags from this file instead of ./orchestrix.toml
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    // Read before the other flags.
    config: Option<PathBuf>,
}

const GLOBAL: &str = "Global options";

// An empty variable counts as unset.
fn non_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl Global {
    /// The server to use; `None` to use a database.
    pub(crate) fn server(&self) -> Result<Option<String>, CliError> {
        let server = non_empty(self.server.as_ref());
        if server.is_some() && non_empty(self.database.as_ref()).is_some() {
            let text = "--server and --database are mutually exclusive; \
                        so are ORCHESTRIX_SERVER_URL and ORCHESTRIX_DATABASE_URL";
            return Err(CliError::Usage(text.into()));
        }
        Ok(server)
    }

    /// Rejects `--server` for a command that needs a database.
    pub(crate) fn reject_server(&self, command: &str) -> Result<(), CliError> {
        match non_empty(self.server.as_ref()) {
            Some(_) => {
                let text = format!(
                    "`orchestrix {command}` works on a database only: leave out --server and ORCHESTRIX_SERVER_URL"
                );
                Err(CliError::Usage(text))
            }
            None => Ok(()),
        }
    }

    /// The API key, if there is one.
    pub(crate) fn api_key(&self) -> Option<String> {
        non_empty(self.api_key.as_ref())
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dev(dev::Arguments),
    Server(server::Arguments),
    Worker(worker::Arguments),
    Migrate(migrate::Arguments),
    #[command(subcommand)]
    Jobs(jobs::Command),
    #[command(subcommand)]
    Dlq(dlq::Command),
    #[command(subcommand)]
    Queues(queues::Command),
    #[command(subcommand)]
    Schedules(schedules::Command),
    #[command(subcommand)]
    Workers(workers::Command),
    #[command(subcommand)]
    Nodes(nodes::Command),
    #[command(subcommand)]
    Tenants(tenants::Command),
    #[command(subcommand)]
    Keys(keys::Command),
    #[command(subcommand)]
    Operations(operations::Command),
    #[command(subcommand)]
    Audit(audit::Command),
    Stats(stats::Arguments),
    Config(template::Arguments),
    Doctor(doctor::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// The trace options of the commands that export traces.
    pub(crate) fn traces(&self) -> Option<&traces::TraceArguments> {
        match self {
            Self::Dev(arguments) => Some(&arguments.traces),
            Self::Server(arguments) => Some(&arguments.traces),
            Self::Worker(arguments) => Some(&arguments.traces),
            _ => None,
        }
    }

    /// Whether to create a missing database file. Not for commands that read: there a missing file means a mistyped
    /// path.
    pub(crate) fn creates_database_file(&self) -> bool {
        match self {
            Self::Migrate(_) | Self::Jobs(jobs::Command::Enqueue(_)) | Self::Keys(keys::Command::Create(_)) => true,
            Self::Schedules(command) => command.creates_schedule(),
            _ => false,
        }
    }
}

impl Cli {
    /// Parses the arguments of this process. Exits if they are invalid or ask for help.
    pub(crate) fn parse_or_exit() -> Self {
        let mut command = Self::with_environment();
        if std::env::args_os().len() < 2 {
            // clap shows the help by itself only if no variable is set, because a variable counts as an argument.
            print_stderr(&command.render_help().to_string());
            std::process::exit(2);
        }
        let args = std::env::args_os().collect::<Vec<_>>();
        // A first pass finds the command, and the flags that the command line and the environment set.
        let given =
            command.clone().ignore_errors(true).try_get_matches_from(&args).unwrap_or_else(|error| error.exit());
        let path = given.get_one::<PathBuf>("config").map(PathBuf::as_path);
        let file = Configuration::read(path, &command, &given)
            .unwrap_or_else(|error| std::process::exit(error::report(&error.into()).code().into()));
        let args = match &file {
            Some(file) => file.append_flags(args),
            None => args,
        };
        let matches = command.try_get_matches_from_mut(args);
        matches.and_then(|matches| Self::from_arg_matches(&matches)).unwrap_or_else(|error| {
            let _ = error.print();
            print_stderr(&file.map(|file| file.locate_flags(&error.to_string())).unwrap_or_default());
            std::process::exit(error.exit_code());
        })
    }

    /// The command line with the environment variable of every flag.
    pub(crate) fn with_environment() -> clap::Command {
        add_variables(Self::command())
    }
}

fn add_variables(command: clap::Command) -> clap::Command {
    command.mut_args(add_variable).mut_subcommands(add_variables)
}

fn add_variable(argument: clap::Arg) -> clap::Arg {
    let argument = match argument.get_action() {
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version => return argument,
        ArgAction::SetTrue => argument.value_parser(FalseyValueParser::new()),
        _ => argument,
    };
    match argument.get_long() {
        Some(flag) if argument.get_env().is_none() => {
            let variable = format!("ORCHESTRIX_{}", flag.replace('-', "_").to_uppercase());
            argument.env(variable).hide_env(true)
        }
        _ => argument,
    }
}

fn levels() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["off", "error", "warn", "info", "debug", "trace"])
        .try_map(|level| level.parse::<LevelFilter>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_command_definition() {
        Cli::with_environment().debug_assert();
    }

    fn assert_variables(command: &clap::Command) {
        for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
            if matches!(argument.get_action(), ArgAction::Help | ArgAction::Version) {
                continue;
            }
            let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            assert!(variable.starts_with("ORCHESTRIX_"), "{} {}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(assert_variables);
    }

    #[test]
    fn every_flag_has_an_environment_variable() {
        assert_variables(&Cli::with_environment());
    }
}
