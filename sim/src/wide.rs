//! Jobs over very many lanes.

use std::{sync::LazyLock, time::Duration};

use orchestrix_core::{JobType, Json, NewJob, Priority, RetryPolicy, Start, Tenant, Timestamp};

use crate::convert;

/// Every so many of the jobs is known to later steps. Reading all of them one by one would take too long.
pub(crate) const KNOWN: usize = 40;

fn names<const N: usize>(prefix: &str) -> [&'static str; N] {
    std::array::from_fn(|i| &*Box::leak(format!("{prefix}{i}").into_boxed_str()))
}

/// The queues of wide worlds. With [`TYPES`], more lanes than a sequence has jobs.
pub(crate) static QUEUES: LazyLock<[&'static str; 600]> = LazyLock::new(|| names("wide"));
/// The tenants of wide worlds. The first of them have the most jobs.
pub(crate) static TENANTS: LazyLock<[&'static str; 60]> = LazyLock::new(|| names("tenant"));
/// The job types of wide worlds.
pub(crate) static TYPES: LazyLock<[&'static str; 40]> = LazyLock::new(|| names("wide."));

/// The `n`-th job of a wide call at `now`. Its payload is its number.
pub(crate) fn job(n: usize, now: Timestamp) -> NewJob {
    // Spreads the numbers over names, priorities and times.
    let mut rest = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    let mut below = |limit: usize| {
        let value = rest % limit;
        rest /= limit;
        value
    };
    let (queue, kind) = (QUEUES[below(QUEUES.len())], TYPES[below(TYPES.len())]);
    let tenant = TENANTS[below(TENANTS.len()).min(below(TENANTS.len()))];
    let (priority, timing, seconds) = ([-1000, -1, 0, 1, 1000][below(5)], below(20), below(9));
    let delay = Duration::from_secs(u64::try_from(seconds).unwrap_or(0) + 1);
    NewJob {
        payload: Json::trusted(&n.to_string()),
        queue: convert::queue(queue),
        tenant: Tenant::trusted(tenant),
        priority: Priority::new(priority).unwrap_or_default(),
        start: if timing < 2 { Start::After(delay) } else { Start::Now },
        expires_at: (timing == 2).then(|| now + delay),
        retry: RetryPolicy { jitter: 0.0, ..RetryPolicy::default() },
        ..NewJob::new(JobType::trusted(kind))
    }
}
