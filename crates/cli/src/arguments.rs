//! The command line. Every flag may also stand in the environment: unless it names a variable of its own, `--some-flag`
//! is `ORCHESTRIX_SOME_FLAG`. And it may stand in a file: see [`configuration`](crate::configuration).

use std::{path::PathBuf, time::Duration};

use clap::{
    ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::{FalseyValueParser, PossibleValuesParser, TypedValueParser},
};
use tracing_subscriber::filter::LevelFilter;

use crate::{
    audit, completions,
    configuration::{Configuration, template},
    dlq, doctor,
    failure::{self, Failure, say},
    jobs, keys, logs, migrate, nodes, operations,
    output::Format,
    queues, schedules, server, stats, times, traces, worker, workers,
};

/// Work done later, surely, and visibly.
#[derive(Debug, Parser)]
#[command(name = "orchestrix", version, disable_help_subcommand = true)]
#[command(after_help = "\
Every flag may stand in the environment: --max-attempts is ORCHESTRIX_MAX_ATTEMPTS. And it may stand in ./orchestrix.toml:
`orchestrix config` prints one to begin with.
Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 unreachable.

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

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where the jobs are: postgres://USER:PASSWORD@HOST/NAME or sqlite:PATH
    // Text until it is opened: an error about a value would show it, and the password with it.
    #[arg(long, global = true, value_name = "URL", env = "ORCHESTRIX_DATABASE_URL", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    pub(crate) database: Option<String>,

    /// Where the jobs are served instead: http://HOST:PORT
    #[arg(long, global = true, value_name = "URL", env = "ORCHESTRIX_SERVER_URL", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    pub(crate) server: Option<String>,

    /// What the server knows you by
    #[arg(long, global = true, value_name = "KEY", env = "ORCHESTRIX_API_KEY", hide_env_values = true)]
    #[arg(help_heading = GLOBAL)]
    api_key: Option<String>,

    /// How to print: for people, as one JSON document, or one JSON object a line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, help_heading = GLOBAL)]
    pub(crate) output: Format,

    /// Leave pending migrations alone, and fail if there are any
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_migrate: bool,

    /// How long to wait for a database or a server that does not answer
    #[arg(long, global = true, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    #[arg(help_heading = GLOBAL)]
    pub(crate) connect_timeout: Duration,

    /// What to log to standard error
    #[arg(long, global = true, value_name = "LEVEL", value_parser = levels(), default_value = "warn")]
    #[arg(help_heading = GLOBAL)]
    pub(crate) log: LevelFilter,

    /// How to log: for people, or one JSON object a line
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t, help_heading = GLOBAL)]
    pub(crate) log_format: logs::Format,

    /// Read flags from this file instead of ./orchestrix.toml
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL)]
    // Asked for before the others are read.
    config: Option<PathBuf>,
}

const GLOBAL: &str = "Global options";

// A variable that is set to nothing is as good as none.
fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl Global {
    /// The server to work over; `None` if a database takes its place.
    pub(crate) fn server(&self) -> Result<Option<String>, Failure> {
        let server = given(self.server.as_ref());
        if server.is_some() && given(self.database.as_ref()).is_some() {
            let text =
                "--server and --database exclude each other; ORCHESTRIX_SERVER_URL and ORCHESTRIX_DATABASE_URL too";
            return Err(Failure::Usage(text.into()));
        }
        Ok(server)
    }

    /// Refuses a server where only a database will do.
    pub(crate) fn no_server(&self, command: &str) -> Result<(), Failure> {
        match given(self.server.as_ref()) {
            Some(_) => {
                let text = format!("{command} works on a database, so leave out --server and ORCHESTRIX_SERVER_URL");
                Err(Failure::Usage(text))
            }
            None => Ok(()),
        }
    }

    /// What the server knows the caller by.
    pub(crate) fn api_key(&self) -> Option<String> {
        given(self.api_key.as_ref())
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dev(server::DevArguments),
    Server(server::ServerArguments),
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
    /// Where traces go, of the commands that have any.
    pub(crate) fn traces(&self) -> Option<&traces::Destination> {
        match self {
            Self::Dev(arguments) => Some(&arguments.traces),
            Self::Server(arguments) => Some(&arguments.traces),
            Self::Worker(arguments) => Some(&arguments.traces),
            _ => None,
        }
    }

    /// Whether a file that does not exist yet is made. Whoever looks for something would only look into a new and empty one
    /// because of a slip in the path.
    pub(crate) fn makes_files(&self) -> bool {
        match self {
            Self::Migrate(_) | Self::Jobs(jobs::Command::Enqueue(_)) | Self::Keys(keys::Command::Create(_)) => true,
            Self::Schedules(command) => command.records(),
            _ => false,
        }
    }
}

impl Cli {
    /// Reads the arguments of this process; ends it where they are wrong, or where help was asked for.
    pub(crate) fn read() -> Self {
        let mut command = Self::with_environment();
        if std::env::args_os().len() < 2 {
            // By itself only shown where no variable is set either, since a variable counts as an argument.
            say(&command.render_help().to_string());
            std::process::exit(2);
        }
        let words = std::env::args_os().collect::<Vec<_>>();
        // Which command it is, and which flags are left to the file.
        let found =
            command.clone().ignore_errors(true).try_get_matches_from(&words).unwrap_or_else(|error| error.exit());
        let named = found.get_one::<PathBuf>("config").map(PathBuf::as_path);
        let file = Configuration::read(named, &command, &found)
            .unwrap_or_else(|failure| std::process::exit(failure::report(&failure.into()).code().into()));
        let words = match &file {
            Some(file) => file.complete(words),
            None => words,
        };
        let matches = command.try_get_matches_from_mut(words);
        matches.and_then(|matches| Self::from_arg_matches(&matches)).unwrap_or_else(|error| {
            let _ = error.print();
            say(&file.map(|file| file.explain(&error.to_string())).unwrap_or_default());
            std::process::exit(error.exit_code());
        })
    }

    /// The command line with the environment variable of every flag.
    pub(crate) fn with_environment() -> clap::Command {
        name_variables(Self::command())
    }
}

fn name_variables(command: clap::Command) -> clap::Command {
    command.mut_args(name_variable).mut_subcommands(name_variables)
}

fn name_variable(argument: clap::Arg) -> clap::Arg {
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
    fn the_command_line_is_consistent() {
        Cli::with_environment().debug_assert();
    }

    fn check(command: &clap::Command) {
        for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
            if matches!(argument.get_action(), ArgAction::Help | ArgAction::Version) {
                continue;
            }
            let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            assert!(variable.starts_with("ORCHESTRIX_"), "{} {}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn every_flag_has_a_variable() {
        check(&Cli::with_environment());
    }
}
