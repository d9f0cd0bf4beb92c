//! Command-line arguments.

use anyhow::{Context, Result, bail, ensure};
use orchestrix_store::ClaimRequest;

use crate::{admin, backend::Backend, bloat, figure::Figure, live};

pub(crate) const HELP: &str = "\
cargo xtask bench store postgres|sqlite [--quick] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench width postgres|sqlite [--quick] [--batch N] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench dependencies postgres|sqlite [--quick] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench bloat postgres        [--quick] [--minutes N] [--rate N] [--snapshot] [--strict]
cargo xtask bench worker postgres|sqlite [--quick] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench coordinator           [--quick] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench schedules             [--quick] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench http                  [--quick] [--only NAME,…] [--rounds N] [--strict]
cargo xtask bench admin                 [--quick] [--finished N] [--pending N] [--plans DIR] [--rounds N] [--strict]
cargo xtask bench live                  [--quick] [--on postgres|sqlite] [--seconds N] [--rate N] [--sockets N] [--burst N] [--strict]

    --quick       a tenth of every count: shows that everything works, says little about speed
    --only NAMES  store: single, bulk, drain, finished, pending, xmin (postgres), memory, latency;
                  width: lanes-100, lanes-1000, lanes-10000, lanes-100000, queues-10000, types-10000, tenants-10000,
                  named-types, named-queues, foreign, paused;
                  dependencies: chain, fan-out;
                  worker: run, start, footprint;
                  coordinator: promotion, punctuality, idle, reaping;
                  schedules: load, burst;
                  http: health, post, get, keys, overload, growth, waits
    --rounds N    how often each figure and its limit are measured, alternating (default 3);
                  admin: how often each page is requested (default 20)
    --batch N     width: jobs per claim (default 1,000 on PostgreSQL, 100 on SQLite)
    --minutes N, --rate N
                  bloat: how long jobs flow, and how many per second (default 10 and 20,000)
    --snapshot    bloat: keep a REPEATABLE READ transaction open, and show how fast the tables grow
    --finished N, --pending N
                  admin: the number of jobs (default 10,000,000 and 1,000,000)
    --plans DIR   admin: write the query plans behind each page to files in DIR
    --on NAME     live: run on one database only
    --seconds N, --rate N, --sockets N, --burst N
                  live: how long jobs are enqueued, how many per second, concurrent WebSockets, and jobs that end at
                  once before the last measurement (default 30, 300, 1,000 and 500,000)
    --strict      exit with 1 if a target is missed
";

/// The divisor of all counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale(usize);

impl Scale {
    pub(crate) const FULL: Self = Self(1);
    const QUICK: Self = Self(10);

    /// Scales down a count of the full run.
    pub(crate) fn of(self, count: usize) -> usize {
        count.div_ceil(self.0)
    }

    /// Whether this is a full run.
    pub(crate) fn is_full(self) -> bool {
        self == Self::FULL
    }
}

/// What a run measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A store.
    Store(Backend),
    /// A store with many queues, types or tenants.
    Width(Backend),
    /// Dependencies between jobs on a store.
    Dependencies(Backend),
    /// A worker on a store.
    Worker(Backend),
    /// Coordinators on PostgreSQL.
    Coordinator,
    /// Schedules, fired by the leader on PostgreSQL.
    Schedules,
    /// The HTTP server on PostgreSQL.
    Http,
}

impl Subject {
    /// The backend that it runs on.
    pub(crate) const fn backend(self) -> Backend {
        match self {
            Self::Store(backend) | Self::Width(backend) | Self::Dependencies(backend) | Self::Worker(backend) => {
                backend
            }
            Self::Coordinator | Self::Schedules | Self::Http => Backend::Postgres,
        }
    }

    /// Its figures.
    pub(crate) fn figures(self) -> Vec<Figure> {
        match self {
            Self::Store(backend) => backend.figures(),
            Self::Width(_) => Figure::width(),
            Self::Dependencies(_) => Figure::DEPENDENCIES.to_vec(),
            Self::Worker(_) => Figure::WORKER.to_vec(),
            Self::Coordinator => Figure::COORDINATOR.to_vec(),
            Self::Schedules => Figure::SCHEDULES.to_vec(),
            Self::Http => Figure::HTTP.to_vec(),
        }
    }
}

/// The arguments of a run.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) subject: Subject,
    pub(crate) figures: Vec<Figure>,
    pub(crate) rounds: usize,
    pub(crate) scale: Scale,
    /// Jobs per claim in a drain of `width`.
    pub(crate) batch: usize,
    pub(crate) strict: bool,
}

/// The command to run.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    /// Measures lists and details over millions of jobs.
    Admin(admin::Request),
    /// Measures the size of tables under a steady flow of jobs.
    Bloat(bloat::Request),
    /// Measures live updates.
    Live(live::Request),
    Measure(Request),
    /// Drains jobs and prints its peak memory; the figure `memory` runs this in a child process.
    DrainAlone {
        url: String,
        jobs: usize,
    },
    /// The same with a worker.
    WorkAlone {
        url: String,
        jobs: usize,
    },
}

impl Command {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments.into_iter();
        let measure = |subject, arguments| Request::parse(subject, arguments).map(Self::Measure);
        let first = arguments.next();
        match first.as_deref() {
            Some("coordinator") => return measure(Subject::Coordinator, arguments),
            Some("schedules") => return measure(Subject::Schedules, arguments),
            Some("admin") => return admin::Request::parse(arguments).map(Self::Admin),
            Some("live") => return live::Request::parse(arguments).map(Self::Live),
            Some("http") => return measure(Subject::Http, arguments),
            _ => {}
        }
        match (first.as_deref(), arguments.next().as_deref()) {
            (Some(subject @ ("store" | "width" | "dependencies" | "worker")), Some(on @ ("postgres" | "sqlite"))) => {
                let backend = if on == "sqlite" { Backend::Sqlite } else { Backend::Postgres };
                let subject = match subject {
                    "width" => Subject::Width,
                    "dependencies" => Subject::Dependencies,
                    "worker" => Subject::Worker,
                    _ => Subject::Store,
                };
                measure(subject(backend), arguments)
            }
            (Some("bloat"), Some("postgres")) => bloat::Request::parse(arguments).map(Self::Bloat),
            (Some(alone @ ("drain-alone" | "work-alone")), Some(url)) => {
                let jobs = arguments.next().with_context(|| format!("{alone} needs a number of jobs"))?.parse()?;
                let url = url.into();
                Ok(if alone == "drain-alone" { Self::DrainAlone { url, jobs } } else { Self::WorkAlone { url, jobs } })
            }
            (None | Some("help" | "--help" | "-h"), None) => Ok(Self::Help),
            _ => bail!("unknown benchmark:\n\n{HELP}"),
        }
    }
}

impl Request {
    fn parse(subject: Subject, mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut request = Self {
            subject,
            figures: subject.figures(),
            rounds: 3,
            scale: Scale::FULL,
            batch: subject.backend().batch(),
            strict: false,
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => request.scale = Scale::QUICK,
                "--strict" => request.strict = true,
                "--only" => {
                    let names = arguments.next().context("--only needs names")?;
                    request.figures = names.split(',').map(str::parse).collect::<Result<_>>()?;
                    for figure in &request.figures {
                        ensure!(
                            subject.figures().contains(figure),
                            "`{}` is not a figure of this benchmark",
                            figure.name()
                        );
                    }
                }
                "--batch" if matches!(subject, Subject::Width(_)) => {
                    request.batch = arguments.next().context("--batch needs a number")?.parse().context("--batch")?;
                    let most = ClaimRequest::MAX_LIMIT;
                    ensure!((1..=most).contains(&request.batch), "--batch must be from 1 to {most}");
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
    use crate::width::Width;

    fn parse(line: &str) -> Result<Command> {
        Command::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_select_figures_rounds_and_scale() {
        let Ok(Command::Measure(request)) = parse("store postgres --quick --only drain,xmin --rounds 5") else {
            panic!("not a run");
        };
        assert_eq!(request.subject, Subject::Store(Backend::Postgres));
        assert_eq!(request.figures, [Figure::Drain, Figure::Xmin]);
        assert_eq!((request.rounds, request.scale.of(100_000)), (5, 10_000));
    }

    #[test]
    fn a_run_without_options_measures_all_figures_of_the_store() {
        let Ok(Command::Measure(request)) = parse("store sqlite") else { panic!("not a run") };
        assert_eq!(request.subject, Subject::Store(Backend::Sqlite));
        assert_eq!(request.figures.len(), Figure::STORE.len() - 1);
        assert!(!request.figures.contains(&Figure::Xmin));
    }

    #[test]
    fn the_coordinator_has_its_own_figures() {
        let Ok(Command::Measure(request)) = parse("coordinator") else { panic!("not a run") };
        assert_eq!((request.subject, request.subject.backend()), (Subject::Coordinator, Backend::Postgres));
        assert_eq!(request.figures, Figure::COORDINATOR);
        let Ok(Command::Measure(request)) = parse("coordinator --only idle,reaping --quick") else {
            panic!("not a run");
        };
        assert_eq!(request.figures, [Figure::Idle, Figure::Reaping]);
        assert!(!request.scale.is_full());
    }

    #[test]
    fn width_runs_on_both_stores_with_any_batch_size() {
        let Ok(Command::Measure(request)) = parse("width sqlite --only lanes-100,paused --batch 7") else {
            panic!("not a run");
        };
        assert_eq!(request.subject, Subject::Width(Backend::Sqlite));
        assert_eq!(request.figures, [Figure::Width(Width::Lanes100), Figure::Width(Width::Paused)]);
        assert_eq!(request.batch, 7);
        let Ok(Command::Measure(request)) = parse("width postgres") else { panic!("not a run") };
        assert_eq!((request.figures.len(), request.batch), (Width::ALL.len(), 1_000));
    }

    #[test]
    fn bloat_takes_a_time_and_a_rate() {
        let Ok(Command::Bloat(request)) = parse("bloat postgres --minutes 2 --rate 500 --snapshot") else {
            panic!("not a run");
        };
        assert_eq!((request.seconds, request.rate, request.snapshot), (120, 500, true));
        let Ok(Command::Bloat(request)) = parse("bloat postgres --quick") else { panic!("not a run") };
        assert_eq!((request.seconds, request.rate, request.snapshot), (60, 2_000, false));
    }

    #[test]
    fn the_server_has_its_own_figures() {
        let Ok(Command::Measure(request)) = parse("http --only post,waits") else { panic!("not a run") };
        assert_eq!((request.subject, request.subject.backend()), (Subject::Http, Backend::Postgres));
        assert_eq!(request.figures, [Figure::Post, Figure::Waits]);
    }

    #[test]
    fn admin_takes_the_number_of_jobs() {
        let Ok(Command::Admin(request)) = parse("admin --quick --pending 2000 --plans there") else {
            panic!("not a run")
        };
        assert_eq!((request.finished, request.pending, request.rounds), (100_000, 2_000, 20));
        assert_eq!(request.plans, Some("there".into()));
    }

    #[test]
    fn live_runs_on_both_databases_or_on_one() {
        let Ok(Command::Live(request)) = parse("live --quick --on sqlite --rate 50") else { panic!("not a run") };
        assert_eq!((request.on, request.seconds, request.rate), (Some(Backend::Sqlite), 3, 50));
        let Ok(Command::Live(request)) = parse("live") else { panic!("not a run") };
        assert_eq!((request.on, request.sockets, request.burst), (None, 1_000, 500_000));
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for line in [
            "store mysql",
            "store postgres --only nonsense",
            "store sqlite --only single,xmin",
            "store postgres --rounds 0",
            "store sqlite fast",
            "store postgres --only idle",
            "coordinator --only drain",
            "coordinator postgres",
            "schedules --only idle",
            "http --only single",
            "http sqlite",
            "admin --only jobs",
            "admin --rounds 0",
            "admin --finished 10",
            "admin --plans",
            "live postgres",
            "live --on mysql",
            "live --rate 0",
            "live --seconds",
            "worker --only drain",
            "width",
            "width postgres --only drain",
            "width postgres --batch 0",
            "width postgres --batch 10001",
            "store postgres --batch 100",
            "dependencies --only chain",
            "dependencies sqlite --only lanes-100",
            "bloat sqlite",
            "bloat postgres --minutes 0",
            "bloat postgres --rate",
            "bloat postgres --rounds 3",
            "worker mysql",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
