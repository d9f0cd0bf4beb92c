//! The result table.

use std::{fmt, time::Duration};

use super::{Request, request::PageTiming};
use crate::{report::write_aligned, sample::thousands};

/// The target for the median of each page.
const TARGET: Duration = Duration::from_millis(50);

/// The timings of all pages.
#[derive(Debug)]
pub(super) struct Table<'a> {
    request: &'a Request,
    timing: Vec<PageTiming>,
}

impl<'a> Table<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self { request, timing: Vec::new() }
    }

    pub(super) fn add(&mut self, timing: PageTiming) {
        self.timing.push(timing);
    }

    /// Whether the median of any page exceeds the target.
    pub(super) fn missed(&self) -> bool {
        self.timing.iter().any(|timing| timing.median() > TARGET)
    }
}

impl PageTiming {
    fn median(&self) -> Duration {
        self.took[self.took.len() / 2]
    }

    fn worst(&self) -> Duration {
        self.took[self.took.len() - 1]
    }

    fn cells(&self) -> [String; 6] {
        let result = match (self.median() > TARGET, self.worst() > TARGET) {
            (true, _) => "MISS",
            (false, true) => "slow once",
            _ => "",
        };
        let items = match (self.items, &self.empty_pages) {
            (Some(items), None) => items.to_string(),
            (Some(_), Some(pages)) => {
                format!(
                    "0, {} {} pages, {:.0} ms",
                    if pages.ended { "first item after" } else { "none in" },
                    pages.parts,
                    millis(pages.took)
                )
            }
            (None, _) => String::new(),
        };
        let (median, worst) = (format!("{:.1}", millis(self.median())), format!("{:.1}", millis(self.worst())));
        [self.path.to_owned(), median, worst, result.to_owned(), thousands(self.bytes as f64), items]
    }
}

/// One page as a single line.
impl fmt::Display for PageTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [path, median, worst, result, _, items] = self.cells();
        write!(f, "{path}: {median} ms, worst {worst}  {result}  {items}")
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["page", "p50, ms", "worst, ms", "result", "bytes", "items"].map(str::to_owned);
        let rows = self.timing.iter().map(|timing| timing.cells().to_vec());
        write_aligned(f, &std::iter::once(head.to_vec()).chain(rows).collect::<Vec<_>>())?;
        let Request { finished, pending, rounds, .. } = self.request;
        writeln!(
            f,
            "\n{} finished and {} pending jobs; each page requested {rounds} times in sequence. Target {} ms. MISS: the median is\nover the target; slow once: only the slowest response is.",
            thousands(*finished as f64),
            thousands(*pending as f64),
            TARGET.as_millis()
        )
    }
}
