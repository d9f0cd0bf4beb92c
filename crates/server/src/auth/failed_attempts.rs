//! The rate limiter of failed authentication attempts, per client network.
//!
//! A network is an IPv4 address or an IPv6 /64: the holder of one address in a /64 usually has all of them. The number
//! of tracked networks is bounded; at capacity the ones with the fewest recent failures are evicted.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Mutex,
    time::{Duration, Instant},
};

use orchestrix_core::RateLimit;

use super::{
    key_cache::{CAPACITY, lock},
    token_bucket::TokenBucket,
};

/// Failures of one network that are answered with 401 at once; further ones get 429.
pub(super) const BURST: u32 = 20;
/// Failures of one network per minute.
pub(super) const PER_MINUTE: u32 = 60;

/// How many networks are evicted at a time: an eviction visits all of them.
const EVICTION_BATCH: usize = CAPACITY / 10;

#[derive(Default)]
pub(super) struct FailedAttempts(Mutex<HashMap<IpAddr, TokenBucket>>);

impl FailedAttempts {
    /// Counts a failure. Above the limit, returns how long the client should wait.
    pub(super) fn record(&self, client: IpAddr, now: Instant) -> Result<(), Duration> {
        let network = network(client);
        let mut networks = lock(&self.0);
        if networks.len() >= CAPACITY && !networks.contains_key(&network) {
            evict(&mut networks, now);
        }
        networks.entry(network).or_insert_with(|| TokenBucket::new(limit(), now)).take(now)
    }

    /// Whether the client's network has exceeded the limit.
    pub(super) fn is_over_limit(&self, client: IpAddr, now: Instant) -> bool {
        lock(&self.0).get_mut(&network(client)).is_some_and(|bucket| bucket.check(now).is_err())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

// A full bucket records no failure. Of the others, the fullest record the fewest.
fn evict(networks: &mut HashMap<IpAddr, TokenBucket>, now: Instant) {
    networks.retain(|_, bucket| !bucket.is_full(now));
    let target = CAPACITY - EVICTION_BATCH;
    if networks.len() <= target {
        return;
    }
    let mut fullest: Vec<(f64, IpAddr)> =
        networks.iter_mut().map(|(network, bucket)| (bucket.available(now), *network)).collect();
    let surplus = fullest.len() - target;
    fullest.select_nth_unstable_by(surplus - 1, |(one, _), (other, _)| other.total_cmp(one));
    for (_, network) in &fullest[..surplus] {
        networks.remove(network);
    }
}

fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

fn limit() -> RateLimit {
    RateLimit::new(PER_MINUTE, Duration::from_secs(60), BURST).expect("the constants are within the allowed range")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn is_within_limit(attempts: &FailedAttempts, client: &str, now: Instant) -> bool {
        attempts.record(client.parse().unwrap(), now).is_ok()
    }

    #[test]
    fn an_ipv6_network_counts_as_one_client_and_an_ipv4_address_as_itself() {
        let (attempts, now) = (FailedAttempts::default(), Instant::now());
        for i in 0..BURST {
            assert!(is_within_limit(&attempts, &format!("2001:db8:1:2:{i:x}::{i:x}"), now), "{i}");
        }
        assert!(!is_within_limit(&attempts, "2001:db8:1:2:ffff::1", now));
        assert!(attempts.is_over_limit("2001:db8:1:2::".parse().unwrap(), now));
        assert!(is_within_limit(&attempts, "2001:db8:1:3::1", now), "the neighbouring network");
        // A dual-stack socket reports an IPv4 address as a mapped IPv6 one.
        for _ in 0..BURST / 2 {
            assert!(is_within_limit(&attempts, "::ffff:10.0.0.7", now) && is_within_limit(&attempts, "10.0.0.7", now));
        }
        assert!(!is_within_limit(&attempts, "::ffff:10.0.0.7", now) && !is_within_limit(&attempts, "10.0.0.7", now));
        assert!(is_within_limit(&attempts, "::ffff:10.0.0.8", now));
    }

    #[test]
    fn a_network_with_many_failures_is_not_evicted_by_networks_with_few() {
        let (attempts, now) = (FailedAttempts::default(), Instant::now());
        let noisy: IpAddr = "10.9.9.9".parse().unwrap();
        while attempts.record(noisy, now).is_ok() {}
        for i in 0..3 * CAPACITY as u32 {
            let client = Ipv4Addr::from_bits(0x0b00_0000 + i).into();
            assert_eq!(attempts.record(client, now), Ok(()));
            assert!(attempts.len() <= CAPACITY);
        }
        assert!(attempts.is_over_limit(noisy, now));
        assert!(attempts.len() >= CAPACITY - EVICTION_BATCH, "no more are evicted than necessary");
        // A minute later all buckets are full again, so all may be evicted.
        let later = now + Duration::from_secs(60);
        for i in 0..CAPACITY as u32 {
            let _ = attempts.record(Ipv4Addr::from_bits(0x0c00_0000 + i).into(), later);
        }
        assert!(attempts.len() <= CAPACITY);
    }
}
