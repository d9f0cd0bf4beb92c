//! The figures and their targets.

use std::{fmt, str::FromStr};

use anyhow::{Result, anyhow};

use crate::{backend::Backend, http, width::Width};

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Single,
    Bulk,
    Drain,
    Finished,
    Pending,
    Xmin,
    Memory,
    Latency,
    Promotion,
    Punctuality,
    Idle,
    Reaping,
    Run,
    Start,
    Footprint,
    Load,
    Burst,
    Health,
    Post,
    Get,
    Keys,
    Overload,
    Growth,
    Waits,
    Width(Width),
    Chain,
    FanOut,
}

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// A minimum ratio to the limit.
    Ratio(f64),
    /// A maximum number of bytes.
    Bytes(u64),
    /// A minimum in this unit.
    Least(f64, &'static str),
    /// A maximum in this unit.
    Most(f64, &'static str),
    /// None: for information.
    None,
}

impl Figure {
    /// Figures of a store.
    pub(crate) const STORE: [Self; 8] =
        [Self::Single, Self::Bulk, Self::Drain, Self::Finished, Self::Pending, Self::Xmin, Self::Memory, Self::Latency];

    /// Figures of the coordinator.
    pub(crate) const COORDINATOR: [Self; 4] = [Self::Promotion, Self::Punctuality, Self::Idle, Self::Reaping];

    /// Figures of a worker.
    pub(crate) const WORKER: [Self; 3] = [Self::Run, Self::Start, Self::Footprint];

    /// Figures of schedules.
    pub(crate) const SCHEDULES: [Self; 2] = [Self::Load, Self::Burst];

    /// Figures of the HTTP server.
    pub(crate) const HTTP: [Self; 7] =
        [Self::Health, Self::Post, Self::Get, Self::Keys, Self::Overload, Self::Growth, Self::Waits];

    /// Figures of dependencies.
    pub(crate) const DEPENDENCIES: [Self; 2] = [Self::Chain, Self::FanOut];

    /// Figures of a store with many lanes.
    pub(crate) fn width() -> Vec<Self> {
        Width::ALL.map(Self::Width).to_vec()
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Bulk => "bulk",
            Self::Drain => "drain",
            Self::Finished => "finished",
            Self::Pending => "pending",
            Self::Xmin => "xmin",
            Self::Memory => "memory",
            Self::Latency => "latency",
            Self::Promotion => "promotion",
            Self::Punctuality => "punctuality",
            Self::Idle => "idle",
            Self::Reaping => "reaping",
            Self::Run => "run",
            Self::Start => "start",
            Self::Footprint => "footprint",
            Self::Load => "load",
            Self::Burst => "burst",
            Self::Health => "health",
            Self::Post => "post",
            Self::Get => "get",
            Self::Keys => "keys",
            Self::Overload => "overload",
            Self::Growth => "growth",
            Self::Waits => "waits",
            Self::Width(width) => width.name(),
            Self::Chain => "chain",
            Self::FanOut => "fan-out",
        }
    }

    pub(crate) const fn target(self, backend: Backend) -> Target {
        use Backend::{Postgres, Sqlite};
        match (self, backend) {
            (Self::Single, Postgres) => Target::Ratio(2.0),
            (Self::Single, Sqlite) => Target::Ratio(5.0),
            (Self::Bulk, Postgres) => Target::Ratio(0.65),
            (Self::Bulk, Sqlite) => Target::Ratio(0.4),
            (Self::Drain, Postgres) => Target::Ratio(0.55),
            (Self::Drain, Sqlite) => Target::Ratio(0.5),
            (Self::Finished | Self::Pending, _) => Target::Ratio(0.9),
            (Self::Xmin | Self::Promotion, _) => Target::Ratio(0.8),
            (Self::Memory, _) => Target::Bytes(100 * 1024 * 1024),
            (Self::Punctuality, _) => Target::Most(50.0, "ms at p99"),
            (Self::Load, _) => Target::Most(10.0, "% of a core"),
            (Self::Burst, _) => Target::Most(2.0, "s"),
            (Self::Run | Self::Overload, _) => Target::Ratio(0.8),
            (Self::Post, _) => Target::Ratio(0.6),
            (Self::Get, _) => Target::Ratio(5.0),
            (Self::Keys, _) => Target::Ratio(0.95),
            (Self::Growth, _) => Target::Most(10.0, "% from the median"),
            (Self::Waits, _) => Target::Bytes(200 * 1024 * 1024),
            (Self::Footprint, _) => Target::Bytes(60 * 1024 * 1024),
            (Self::Width(width), _) => Target::Ratio(width.target()),
            (Self::Chain, _) => Target::Least(2_000.0, "levels/s"),
            (Self::FanOut, _) => Target::Most(50.0, "ms"),
            (Self::Latency | Self::Idle | Self::Reaping | Self::Start | Self::Health, _) => Target::None,
        }
    }

    /// The number of steps of the progress bar.
    pub(crate) const fn steps(self, backend: Backend, rounds: usize) -> usize {
        match (self, backend) {
            (
                Self::Memory | Self::Idle | Self::Start | Self::Footprint | Self::Load | Self::Growth | Self::Waits,
                _,
            )
            | (Self::Latency, Backend::Sqlite) => 1,
            (Self::Latency, Backend::Postgres) | (Self::Punctuality, _) => 2,
            (Self::Reaping | Self::Burst | Self::Chain | Self::FanOut, _) => rounds,
            (Self::Keys, _) => 4 * rounds,
            (Self::Overload, _) => http::overload_steps(rounds),
            _ => 2 * rounds,
        }
    }
}

impl FromStr for Figure {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = || {
            let others = Self::COORDINATOR.into_iter().chain(Self::WORKER).chain(Self::SCHEDULES).chain(Self::HTTP);
            Self::STORE.into_iter().chain(others).chain(Self::width()).chain(Self::DEPENDENCIES)
        };
        all().find(|figure| figure.name() == text).ok_or_else(|| {
            let names = all().map(Self::name).collect::<Vec<_>>().join(", ");
            anyhow!("unknown figure `{text}`: the figures are {names}")
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(ratio) => write!(f, ">= {ratio:.2}"),
            Self::Bytes(bytes) => write!(f, "< {} MB", bytes / 1024 / 1024),
            Self::Least(least, what) => write!(f, ">= {least} {what}"),
            Self::Most(most, what) => write!(f, "<= {most} {what}"),
            Self::None => f.write_str("-"),
        }
    }
}
