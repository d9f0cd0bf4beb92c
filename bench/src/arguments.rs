//! What the command line asks for.

use anyhow::{Context, Result, bail, ensure};

use crate::{backend::Backend, figure::Figure};

pub(crate) const HELP: &str = "\
cargo xtask bench store postgres|sqlite [--quick] [--only NAME,…] [--rounds N] [--strict]

    --quick       a tenth of every count: a smoke run, whose numbers say little
    --only NAMES  some of: single, bulk, drain, finished, pending, xmin (postgres), memory, latency
    --rounds N    how often each figure and its limit are measured, in turns; 3 unless told otherwise
    --strict      exit with 1 if a target is missed
";

/// How much smaller than a full run a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale(usize);

impl Scale {
    const FULL: Self = Self(1);
    const QUICK: Self = Self(10);

    /// A count of the full run, scaled down.
    pub(crate) fn of(self, count: usize) -> usize {
        count.div_ceil(self.0)
    }

    /// Whether nothing is scaled down.
    pub(crate) fn is_full(self) -> bool {
        self == Self::FULL
    }
}

/// A run of a store's benchmark.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) backend: Backend,
    pub(crate) figures: Vec<Figure>,
    pub(crate) rounds: usize,
    pub(crate) scale: Scale,
    pub(crate) strict: bool,
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Store(Request),
    /// Claims and completes jobs and prints how much memory that took; `memory` starts itself this way.
    DrainAlone {
        url: String,
        jobs: usize,
    },
}

impl Command {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments.into_iter();
        match (arguments.next().as_deref(), arguments.next().as_deref()) {
            (Some("store"), Some("postgres")) => Request::parse(Backend::Postgres, arguments).map(Self::Store),
            (Some("store"), Some("sqlite")) => Request::parse(Backend::Sqlite, arguments).map(Self::Store),
            (Some("drain-alone"), Some(url)) => {
                let jobs = arguments.next().context("drain-alone needs a number of jobs")?.parse()?;
                Ok(Self::DrainAlone { url: url.into(), jobs })
            }
            (None | Some("help" | "--help" | "-h"), None) => Ok(Self::Help),
            _ => bail!("there is one benchmark so far:\n\n{HELP}"),
        }
    }
}

impl Request {
    fn parse(backend: Backend, mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut request = Self { backend, figures: backend.figures(), rounds: 3, scale: Scale::FULL, strict: false };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => request.scale = Scale::QUICK,
                "--strict" => request.strict = true,
                "--only" => {
                    let names = arguments.next().context("--only needs names")?;
                    request.figures = names.split(',').map(str::parse).collect::<Result<_>>()?;
                    for figure in &request.figures {
                        ensure!(backend.figures().contains(figure), "`{}` is not for this store", figure.name());
                    }
                }
                "--rounds" => {
                    request.rounds =
                        arguments.next().context("--rounds needs a number")?.parse().context("--rounds")?;
                    ensure!(request.rounds > 0, "--rounds must be at least 1");
                }
                other => bail!("`{other}` is not an option:\n\n{HELP}"),
            }
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command> {
        Command::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_narrow_a_run() {
        let Ok(Command::Store(request)) = parse("store postgres --quick --only drain,xmin --rounds 5") else {
            panic!("not a run");
        };
        assert_eq!(request.backend, Backend::Postgres);
        assert_eq!(request.figures, [Figure::Drain, Figure::Xmin]);
        assert_eq!((request.rounds, request.scale.of(100_000)), (5, 10_000));
    }

    #[test]
    fn a_run_without_options_measures_whatever_the_store_has() {
        let Ok(Command::Store(request)) = parse("store sqlite") else { panic!("not a run") };
        assert_eq!(request.backend, Backend::Sqlite);
        assert_eq!(request.figures.len(), Figure::ALL.len() - 1);
        assert!(!request.figures.contains(&Figure::Xmin));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            "store mysql",
            "store postgres --only nonsense",
            "store sqlite --only single,xmin",
            "store postgres --rounds 0",
            "store sqlite fast",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
