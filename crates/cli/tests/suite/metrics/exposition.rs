//! A strict parser of the Prometheus text format.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use crate::server::process::{ServerProcess, TIMEOUT};

/// Every documented metric: name, type and labels.
pub(super) const ALL: [(&str, &str, &[&str]); 15] = [
    ("orchestrix_jobs_enqueued_total", "counter", &["queue", "type"]),
    ("orchestrix_jobs_finished_total", "counter", &["outcome", "queue", "type"]),
    ("orchestrix_job_wait_seconds", "histogram", &["queue"]),
    ("orchestrix_job_run_seconds", "histogram", &["queue", "type"]),
    ("orchestrix_queue_depth", "gauge", &["queue", "state"]),
    ("orchestrix_queue_oldest_seconds", "gauge", &["queue"]),
    ("orchestrix_leases_lost_total", "counter", &[]),
    ("orchestrix_stale_writes_rejected_total", "counter", &[]),
    ("orchestrix_claim_seconds", "histogram", &[]),
    ("orchestrix_leader", "gauge", &["node"]),
    ("orchestrix_leader_changes_total", "counter", &[]),
    ("orchestrix_workers", "gauge", &["state"]),
    ("orchestrix_schedule_fires_total", "counter", &["outcome", "schedule"]),
    ("orchestrix_http_requests_total", "counter", &["method", "route", "status"]),
    ("orchestrix_http_request_seconds", "histogram", &[]),
];

type Labels = BTreeMap<String, String>;

/// One scrape of a process.
pub(super) struct MetricsPage {
    pub(super) text: String,
    families: BTreeSet<String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl MetricsPage {
    pub(super) fn of(server: &ServerProcess) -> Self {
        let answer = server.get("/metrics");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        Self::read(answer.body)
    }

    /// Scrapes until the condition holds.
    pub(super) fn wait_until(server: &ServerProcess, condition: impl Fn(&Self) -> bool) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let page = Self::of(server);
            if condition(&page) {
                return page;
            }
            assert!(Instant::now() < deadline, "{}", page.text);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The names of its metrics.
    pub(super) fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.families.iter().cloned()
    }

    /// The sample with exactly these labels.
    pub(super) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    fn read(text: String) -> Self {
        let mut page = Self { text: String::new(), families: BTreeSet::new(), samples: BTreeMap::new() };
        let (mut helped, mut family) = (String::new(), None);
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').unwrap();
                assert!(text.len() > 10, "{line}");
                helped = name.to_owned();
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(helped, name, "HELP comes before TYPE");
                assert!(page.families.insert(name.to_owned()), "{name} twice");
                family = ALL.iter().find(|(known, ..)| *known == name);
                let (_, known, _) = family.unwrap_or_else(|| panic!("{name} is not documented"));
                assert_eq!(*known, kind, "{name}");
            } else {
                page.sample(family.unwrap_or_else(|| panic!("{line} has no family")), line);
            }
        }
        page.check_histograms();
        page.text = text;
        page
    }

    fn sample(&mut self, family: &(&str, &str, &[&str]), line: &str) {
        let (family, kind, expected) = *family;
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap())),
            None => (series, Labels::new()),
        };
        let part = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let mut names: Vec<&str> = labels.keys().map(String::as_str).filter(|name| *name != "le").collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{line}");
        match (kind, part) {
            ("histogram", "_bucket") => assert!(labels.contains_key("le"), "{line}"),
            ("histogram", "_sum" | "_count") | ("counter" | "gauge", "") => {
                assert!(!labels.contains_key("le"), "{line}");
            }
            _ => panic!("{line}"),
        }
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(value >= 0.0, "{line}");
        assert_eq!(self.samples.insert((name.to_owned(), labels), value), None, "{line} twice");
    }

    // Buckets are cumulative, and the last one equals the count.
    fn check_histograms(&self) {
        let mut buckets: BTreeMap<(String, Labels), Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), value) in &self.samples {
            if let Some(name) = name.strip_suffix("_bucket") {
                let mut labels = labels.clone();
                let limit: f64 = labels.remove("le").unwrap().parse().unwrap();
                buckets.entry((name.to_owned(), labels)).or_default().push((limit, *value));
            }
        }
        for ((name, labels), mut buckets) in buckets {
            buckets.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.len() > 10, "{name} {labels:?}");
            assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{name} {labels:?}: {buckets:?}");
            let (limit, all) = *buckets.last().unwrap();
            assert!(limit.is_infinite());
            assert_eq!(self.samples.get(&(format!("{name}_count"), labels)), Some(&all), "{name}");
        }
    }
}

fn labels(text: &str) -> Labels {
    let mut labels = Labels::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        let end = (1..=after.len()).find(|end| after[..*end].ends_with('"') && !after[..*end].ends_with("\\\""));
        let end = end.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(labels.insert(name.into(), after[..end - 1].into()), None, "{text}");
        rest = after[end..].strip_prefix(',').unwrap_or(&after[end..]);
    }
    labels
}
