//! Runs probes one after the other, each with a time limit. A probe that fails becomes a warning, and the next one
//! runs.

use std::time::Duration;

use orchestrix_store::Result;

use crate::check::Check;

/// The time limit of one probe: longer than the statement timeout of a database, short enough to wait for at a
/// terminal.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(8);

/// Runs the probes of one target and collects their checks.
#[derive(Debug)]
pub(crate) struct CheckRunner {
    pub(crate) checks: Vec<Check>,
    /// The target in words: "the database".
    target: &'static str,
    timeout: Duration,
    /// A probe timed out; the following ones are skipped instead of waiting for each.
    timed_out: bool,
}

impl CheckRunner {
    pub(crate) fn new(target: &'static str) -> Self {
        Self { checks: Vec::new(), target, timeout: PROBE_TIMEOUT, timed_out: false }
    }

    /// Runs a probe and evaluates its facts. Returns the facts for later probes.
    pub(crate) async fn run<T>(
        &mut self,
        name: &'static str,
        probe: impl Future<Output = Result<T>>,
        evaluate: impl FnOnce(&T) -> Vec<Check>,
    ) -> Option<T> {
        if self.timed_out {
            self.checks.push(Check::unknown(name, format!("{} stopped answering", self.target)));
            return None;
        }
        match tokio::time::timeout(self.timeout, probe).await {
            Ok(Ok(facts)) => {
                self.checks.extend(evaluate(&facts));
                Some(facts)
            }
            Ok(Err(error)) => {
                self.checks.push(Check::unknown(name, error));
                None
            }
            Err(_) => {
                self.timed_out = true;
                self.checks.push(Check::unknown(name, format!("no answer within {:?}", self.timeout)));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_store::StoreError;

    use super::*;

    #[tokio::test]
    async fn a_failed_probe_does_not_stop_the_others_and_only_the_first_timeout_is_waited_for() {
        let mut runner = CheckRunner { timeout: Duration::from_millis(10), ..CheckRunner::new("the database") };
        let evaluate = |n: &i32| vec![Check::ok("a", n.to_string())];
        assert_eq!(runner.run("a", async { Err(StoreError::Backend("broken".into())) }, evaluate).await, None);
        assert_eq!(runner.run("a", async { Ok(1) }, evaluate).await, Some(1));
        assert_eq!(runner.run("a", std::future::pending(), evaluate).await, None);
        runner.timeout = Duration::from_secs(3600);
        assert_eq!(runner.run("a", std::future::pending(), evaluate).await, None);
        let details: Vec<&str> = runner.checks.iter().map(|check| check.detail.as_str()).collect();
        assert_eq!(details.len(), 4);
        assert!(details[0].contains("broken") && details[1] == "1", "{details:?}");
        assert!(
            details[2].contains("no answer within 10ms") && details[3].contains("stopped answering"),
            "{details:?}"
        );
    }
}
