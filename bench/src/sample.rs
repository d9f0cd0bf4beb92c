//! One measurement, and the median of several.

use std::{fmt, time::Duration};

/// The result of one measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) jobs_per_second: f64,
    pub(crate) written_per_job: f64,
    pub(crate) transactions_per_job: f64,
}

impl Sample {
    /// `written` bytes and `took` are for `jobs`; `transactions` are for `counted` jobs, which include those before
    /// the clock started.
    pub(crate) fn new(jobs: u64, took: Duration, written: u64, transactions: u64, counted: u64) -> Self {
        Self {
            jobs_per_second: jobs as f64 / took.as_secs_f64(),
            written_per_job: written as f64 / jobs as f64,
            transactions_per_job: transactions as f64 / counted as f64,
        }
    }
}

/// Median and range of several values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (low, high) = (values[0], values[values.len() - 1]);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Self { median, low, high }
    }

    /// The median alone.
    pub(crate) fn median_of(values: impl IntoIterator<Item = f64>) -> f64 {
        Self::of(values).median
    }

    /// With this many decimals: `0.61 (0.58-0.66)`.
    pub(crate) fn with_decimals(self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$}-{:.decimals$})", self.median, self.low, self.high)
    }
}

/// As whole numbers: `48,211 (47,020-51,333)`.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}-{})", thousands(self.median), thousands(self.low), thousands(self.high))
    }
}

/// A whole number with thousands separators.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value);
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_values_is_their_midpoint() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(Spread::of([9.0, 1.0, 3.0]).with_decimals(1), "3.0 (1.0-9.0)");
    }

    #[test]
    fn long_numbers_get_thousands_separators() {
        assert_eq!([0.0, 999.4, 1_000.0, 1_234_567.0].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
