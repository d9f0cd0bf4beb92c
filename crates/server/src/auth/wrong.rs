//! Keys that are none, counted by where they came from.
//!
//! A place is an address of IPv4, or a network of IPv6 (its first 64 bits): whoever has one address there has all of them. So many places are
//! remembered; with more, those are forgotten from which the fewest came lately.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Mutex,
    time::{Duration, Instant},
};

use orchestrix_core::RateLimit;

use super::{
    bucket::Bucket,
    memory::{MOST, lock},
};

/// From one place: so many at once, and so many a minute.
pub(super) const WRONG: (u32, u32) = (20, 60);

/// How many are forgotten at a time when there are too many: each time all are looked at.
const AT_ONCE: usize = MOST / 10;

#[derive(Default)]
pub(super) struct Wrong(Mutex<HashMap<IpAddr, Bucket>>);

impl Wrong {
    /// Counts one; if there were too many, says how long to wait.
    pub(super) fn count(&self, from: IpAddr, now: Instant) -> Result<(), Duration> {
        let place = place(from);
        let mut places = lock(&self.0);
        if places.len() >= MOST && !places.contains_key(&place) {
            make_room(&mut places, now);
        }
        places.entry(place).or_insert_with(|| Bucket::new(limit(), now)).take(now)
    }

    /// Whether too many came from there.
    pub(super) fn is_doubted(&self, from: IpAddr, now: Instant) -> bool {
        lock(&self.0).get_mut(&place(from)).is_some_and(|bucket| bucket.wait(now).is_err())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

// Those that are full say nothing any more; of the others, the fullest say the least.
fn make_room(places: &mut HashMap<IpAddr, Bucket>, now: Instant) {
    places.retain(|_, bucket| !bucket.is_full(now));
    let room = MOST - AT_ONCE;
    if places.len() <= room {
        return;
    }
    let mut fullest: Vec<(f64, IpAddr)> = places.iter_mut().map(|(place, bucket)| (bucket.left(now), *place)).collect();
    let spare = fullest.len() - room;
    fullest.select_nth_unstable_by(spare - 1, |(one, _), (other, _)| other.total_cmp(one));
    for (_, place) in &fullest[..spare] {
        places.remove(place);
    }
}

fn place(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

fn limit() -> RateLimit {
    RateLimit::new(WRONG.1, Duration::from_secs(60), WRONG.0).expect("the limit is within what may be set")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn counts(wrong: &Wrong, from: &str, now: Instant) -> bool {
        wrong.count(from.parse().unwrap(), now).is_ok()
    }

    #[test]
    fn all_addresses_of_a_network_count_as_one_and_those_of_ipv4_as_themselves() {
        let (wrong, now) = (Wrong::default(), Instant::now());
        for i in 0..WRONG.0 {
            assert!(counts(&wrong, &format!("2001:db8:1:2:{i:x}::{i:x}"), now), "{i}");
        }
        assert!(!counts(&wrong, "2001:db8:1:2:ffff::1", now));
        assert!(wrong.is_doubted("2001:db8:1:2::".parse().unwrap(), now));
        assert!(counts(&wrong, "2001:db8:1:3::1", now), "its neighbour");
        // As a socket of both kinds tells an address of IPv4.
        for _ in 0..WRONG.0 / 2 {
            assert!(counts(&wrong, "::ffff:10.0.0.7", now) && counts(&wrong, "10.0.0.7", now));
        }
        assert!(!counts(&wrong, "::ffff:10.0.0.7", now) && !counts(&wrong, "10.0.0.7", now));
        assert!(counts(&wrong, "::ffff:10.0.0.8", now));
    }

    #[test]
    fn a_place_that_many_came_from_is_not_forgotten_however_many_others_come() {
        let (wrong, now) = (Wrong::default(), Instant::now());
        let many: IpAddr = "10.9.9.9".parse().unwrap();
        while wrong.count(many, now).is_ok() {}
        for i in 0..3 * MOST as u32 {
            let from = Ipv4Addr::from_bits(0x0b00_0000 + i).into();
            assert_eq!(wrong.count(from, now), Ok(()));
            assert!(wrong.len() <= MOST);
        }
        assert!(wrong.is_doubted(many, now));
        assert!(wrong.len() >= MOST - AT_ONCE, "no more are forgotten than there must be");
        // After a while nothing of it matters any more.
        let later = now + Duration::from_secs(60);
        for i in 0..MOST as u32 {
            let _ = wrong.count(Ipv4Addr::from_bits(0x0c00_0000 + i).into(), later);
        }
        assert!(wrong.len() <= MOST);
    }
}
