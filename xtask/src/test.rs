//! `cargo xtask test`: all checks from formatting to examples, on a private server.

use std::iter;
use std::num::NonZero;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use orchestrix_testkit::{Durability, PostgresServer, ScratchDir, TEST_POSTGRES};

use crate::crates::{self, Crate};
use crate::step::Step;
use crate::tools;

/// Examples that must run to their end without arguments or input.
const EXAMPLES: [&str; 6] = ["quickstart", "email", "import", "graph", "orders", "service --try"];

/// The parts of a full run in order, the cheap ones first.
const PARTS: [Part; 6] = [Part::Fmt, Part::Clippy, Part::Docs, Part::Tests, Part::Doctests, Part::Examples];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Fmt,
    Clippy,
    Docs,
    Tests,
    Doctests,
    Examples,
}

/// The parsed arguments.
#[derive(Debug)]
struct Request {
    parts: Vec<Part>,
    /// The crate that the tests are limited to.
    only: Option<Crate>,
    /// Arguments for nextest.
    nextest: Vec<String>,
    /// The number of random sequences for the comparison of the stores.
    seeds: Option<Seeds>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seeds {
    count: u32,
    /// Whether only the comparison runs.
    alone: bool,
}

/// Runs the checks that the arguments name.
pub(crate) fn run(arguments: Vec<String>) -> Result<()> {
    let start = Instant::now();
    let request = Request::parse(arguments)?;
    request.ensure_tools()?;
    let server = match request.needs_server() {
        true => Some(tools::start_postgres(Durability::Fast)?),
        false => None,
    };
    let scratch = ScratchDir::create()?;
    for &part in &request.parts {
        for step in request.steps(part)? {
            with_server(step, server.as_ref()).env("TMPDIR", scratch.path().to_string_lossy()).run()?;
        }
    }
    println!("\nAll passed in {:.1} s.", start.elapsed().as_secs_f64());
    Ok(())
}

/// The names that `--only` accepts.
pub(crate) fn names() -> Result<Vec<String>> {
    let parts = PARTS.iter().map(|part| part.name().to_owned());
    Ok(parts.chain(crates::all()?.into_iter().map(|member| member.name)).collect())
}

/// The number of concurrent tests: twice the number of cores, because most tests wait for processes and servers.
fn test_threads() -> usize {
    2 * thread::available_parallelism().map_or(1, NonZero::get)
}

fn with_server(step: Step, server: Option<&PostgresServer>) -> Step {
    match server {
        // Examples use the server's default database, which the tests do not touch.
        Some(server) => step.env(TEST_POSTGRES, server.base_url()).env("DATABASE_URL", server.url("postgres")),
        None => step,
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Docs => "docs",
            Self::Tests => "tests",
            Self::Doctests => "doctests",
            Self::Examples => "examples",
        }
    }
}

impl Request {
    fn parse(arguments: Vec<String>) -> Result<Self> {
        let mut request = Self { parts: PARTS.to_vec(), only: None, nextest: Vec::new(), seeds: None };
        let alone = arguments.len() == 2;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--" => request.nextest = arguments.by_ref().collect(),
                "--seeds" => {
                    let count = arguments.next().and_then(|count| count.parse().ok());
                    request.seeds = Some(Seeds { count: count.context("--seeds needs a number")?, alone });
                }
                "--only" => request.narrow(&arguments.next().context("--only needs a name")?)?,
                other => match other.strip_prefix("--only=") {
                    Some(name) => request.narrow(name)?,
                    None => bail!("`{other}` is not an option of test; arguments for nextest go after `--`"),
                },
            }
        }
        if !request.nextest.is_empty() {
            if !request.parts.contains(&Part::Tests) {
                bail!("arguments after `--` are for nextest, which this selection does not run");
            }
            // Filters on one crate mean its tests only, without its doctests.
            if request.only.is_some() {
                request.parts = vec![Part::Tests];
            }
        }
        if let Some(seeds) = request.seeds {
            if !request.parts.contains(&Part::Tests) {
                bail!("--seeds is for the tests, which this selection does not run");
            }
            if seeds.alone {
                request.parts = vec![Part::Tests];
            }
        }
        Ok(request)
    }

    fn narrow(&mut self, name: &str) -> Result<()> {
        if let Some(part) = PARTS.into_iter().find(|part| part.name() == name) {
            self.parts = vec![part];
            return Ok(());
        }
        let member = crates::all()?.into_iter().find(|member| member.name == name || member.package == name);
        let Some(member) = member else {
            bail!("unknown name `{name}`: --only takes {}", names()?.join(", "));
        };
        self.parts = vec![Part::Tests];
        if member.is_library {
            self.parts.push(Part::Doctests);
        }
        self.only = Some(member);
        Ok(())
    }

    fn ensure_tools(&self) -> Result<()> {
        for part in &self.parts {
            match part {
                Part::Fmt => tools::ensure_component("rustfmt", "fmt")?,
                Part::Clippy => tools::ensure_component("clippy", "clippy")?,
                Part::Tests => {
                    tools::ensure_nextest()?;
                    tools::ensure_pgbouncer()?;
                    // Only the tests of the command need these tools.
                    if self.only.as_ref().is_none_or(|member| member.name == "cli") {
                        tools::ensure_schemathesis()?;
                        tools::ensure_chromium()?;
                    }
                }
                Part::Docs | Part::Doctests | Part::Examples => {}
            }
        }
        Ok(())
    }

    fn needs_server(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Tests | Part::Doctests | Part::Examples))
    }

    fn with_seeds(&self, step: Step) -> Step {
        match self.seeds {
            Some(seeds) => step.env("ORCHESTRIX_SEEDS", seeds.count.to_string()),
            None => step,
        }
    }

    fn steps(&self, part: Part) -> Result<Vec<Step>> {
        let name = part.name();
        let scope = match &self.only {
            Some(member) => format!("-p {}", member.package),
            None => "--workspace".into(),
        };
        Ok(match part {
            Part::Fmt => vec![Step::cargo(name, "fmt --all --check")],
            Part::Clippy => {
                let command = "clippy --workspace --all-targets --all-features -- -D warnings";
                vec![Step::cargo(name, command)]
            }
            Part::Docs => {
                let command = "doc --workspace --no-deps --all-features";
                vec![Step::cargo(name, command).env("RUSTDOCFLAGS", "-D warnings")]
            }
            // By `cargo test`, because nextest limits the time of a test and hides its output.
            Part::Tests if self.seeds.is_some_and(|seeds| seeds.alone) => {
                let command = "test -p orchestrix-sim --test alike -- --nocapture";
                vec![self.with_seeds(Step::cargo(name, command))]
            }
            Part::Tests => {
                // A workspace without tests is a mistake, and so is a filter that matches none; a crate without tests
                // is not.
                let none = if self.only.is_some() && self.nextest.is_empty() { "--no-tests=warn" } else { "" };
                let command = format!("nextest run {scope} --all-features {none}");
                // On terminals without cursor control, nextest's progress bar hides its results.
                let step = Step::cargo(name, &command)
                    .env("NEXTEST_SHOW_PROGRESS", "counter")
                    .env("NEXTEST_TEST_THREADS", test_threads().to_string());
                vec![self.with_seeds(step.args(self.nextest.clone()))]
            }
            Part::Doctests => vec![Step::cargo(name, &format!("test --doc {scope} --all-features"))],
            Part::Examples => {
                // The same packages and features as for the tests: cargo reuses what they have built.
                let build = Step::cargo(name, "build --workspace --all-features --examples");
                let runs = EXAMPLES.iter().map(|example| Step::example(name, example));
                iter::once(Ok(build)).chain(runs).collect::<Result<_>>()?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Request> {
        Request::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_valid_ones() {
        let message = parse("--only nonsense").unwrap_err().to_string();
        for name in ["nonsense", "fmt", "doctests", "core", "testkit"] {
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn a_crate_is_selected_by_its_directory_or_its_package_name() {
        for name in ["testkit", "orchestrix-testkit"] {
            let request = parse(&format!("--only {name}")).unwrap();
            assert_eq!(request.parts, [Part::Tests, Part::Doctests]);
            assert_eq!(request.only.unwrap().package, "orchestrix-testkit");
        }
    }

    #[test]
    fn nextest_arguments_limit_a_crate_to_its_tests_and_keep_a_full_run_complete() {
        assert_eq!(parse("--only testkit -- kill").unwrap().parts, [Part::Tests]);
        assert_eq!(parse("-- -j1").unwrap().parts, PARTS);
        assert!(parse("--only fmt -- kill").is_err());
    }

    #[test]
    fn seeds_alone_run_only_the_comparison_of_the_stores() {
        let command = |line: &str| format!("{:?}", parse(line).unwrap().steps(Part::Tests).unwrap());
        let alone = command("--seeds 500");
        assert_eq!(parse("--seeds 500").unwrap().parts, [Part::Tests]);
        assert!(alone.contains(r#"("ORCHESTRIX_SEEDS", "500")"#) && alone.contains("orchestrix-sim"), "{alone}");
        let within = command("--only sim --seeds 50 -- alike");
        assert!(within.contains(r#"("ORCHESTRIX_SEEDS", "50")"#) && within.contains("nextest"), "{within}");
        assert!(!command("--only sim").contains("ORCHESTRIX_SEEDS"));
        for line in ["--seeds", "--seeds many", "--only fmt --seeds 5"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
