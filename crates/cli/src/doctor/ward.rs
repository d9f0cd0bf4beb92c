//! One look after the other, each within its time. One that fails is told, and the next is taken.

use std::time::Duration;

use orchestrix_store::Result;

use super::check::Check;

/// How long one look may take. Longer than a database works on one question, shorter than anybody waits for a word.
pub(super) const LIMIT: Duration = Duration::from_secs(8);

/// What was found so far.
#[derive(Debug)]
pub(super) struct Ward {
    pub(super) checks: Vec<Check>,
    /// What is being looked at: "the database".
    subject: &'static str,
    limit: Duration,
    /// It has stopped answering: to ask on would only cost time.
    silent: bool,
}

impl Ward {
    pub(super) fn new(subject: &'static str) -> Self {
        Self { checks: Vec::new(), subject, limit: LIMIT, silent: false }
    }

    /// Looks, and judges what is found. What was found is handed on for later looks.
    pub(super) async fn look<T>(
        &mut self,
        name: &'static str,
        work: impl Future<Output = Result<T>>,
        judge: impl FnOnce(&T) -> Vec<Check>,
    ) -> Option<T> {
        if self.silent {
            self.checks.push(Check::unknown(name, format!("{} stopped answering", self.subject)));
            return None;
        }
        match tokio::time::timeout(self.limit, work).await {
            Ok(Ok(found)) => {
                self.checks.extend(judge(&found));
                Some(found)
            }
            Ok(Err(error)) => {
                self.checks.push(Check::unknown(name, error));
                None
            }
            Err(_) => {
                self.silent = true;
                self.checks.push(Check::unknown(name, format!("no answer within {:?}", self.limit)));
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
    async fn one_that_fails_does_not_stop_the_others_and_silence_is_waited_for_once() {
        let mut ward = Ward { limit: Duration::from_millis(10), ..Ward::new("the database") };
        let found = |n: &i32| vec![Check::ok("a", n.to_string())];
        assert_eq!(ward.look("a", async { Err(StoreError::Backend("broken".into())) }, found).await, None);
        assert_eq!(ward.look("a", async { Ok(1) }, found).await, Some(1));
        assert_eq!(ward.look("a", std::future::pending(), found).await, None);
        ward.limit = Duration::from_secs(3600);
        assert_eq!(ward.look("a", std::future::pending(), found).await, None);
        let details: Vec<&str> = ward.checks.iter().map(|check| check.detail.as_str()).collect();
        assert_eq!(details.len(), 4);
        assert!(details[0].contains("broken") && details[1] == "1", "{details:?}");
        assert!(
            details[2].contains("no answer within 10ms") && details[3].contains("stopped answering"),
            "{details:?}"
        );
    }
}
