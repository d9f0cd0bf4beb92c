use futures_util::future::join_all;
use orchestrix_core::{RateLimit, Role, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_store::NewKey;

use super::*;
use crate::auth::{
    looks::PATIENCE,
    memory::{REMEMBERED, lock},
    wrong::WRONG,
};

const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

fn with(key: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
    headers
}

fn place() -> (Arc<dyn Store>, Keys) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    (Arc::clone(&store), Keys::new(store))
}

async fn make(store: &Arc<dyn Store>, rate_limit: Option<RateLimit>) -> Shown {
    make_until(store, rate_limit, None).await
}

async fn make_until(store: &Arc<dyn Store>, rate_limit: Option<RateLimit>, expires_at: Option<Timestamp>) -> Shown {
    let shown = Shown::fresh();
    let key = NewKey {
        id: shown.id.clone(),
        digest: shown.digest(),
        name: "n".into(),
        role: Role::Client,
        tenant: None,
        rate_limit,
        expires_at,
    };
    store.create_key(key).await.unwrap();
    shown
}

impl Keys {
    async fn told(&self, key: &str) -> Option<Code> {
        self.caller(&with(key), HERE, Needs::Store).await.err().map(|refusal| refusal.0.code)
    }

    /// The same of a request that needs nothing of the store.
    async fn told_alone(&self, key: &str) -> Option<Code> {
        self.caller(&with(key), HERE, Needs::Nothing).await.err().map(|refusal| refusal.0.code)
    }

    /// As if it had been looked at so long ago.
    fn age(&self, shown: &Shown, by: Duration) {
        let mut good = lock(&self.memory.good);
        let known = Arc::get_mut(good.get_mut(&shown.id).unwrap()).unwrap();
        known.again -= by;
        known.until -= by;
        known.remembered -= by;
    }
}

/// The same id with another secret.
fn wrong_secret(shown: &Shown) -> String {
    let text = shown.text();
    format!("{}{}", &text[..text.len() - 64], "0".repeat(64))
}

const LONG: Duration = Duration::from_secs(2);
const NO: Option<Code> = Some(Code::Unauthenticated);
const SLOWER: Option<Code> = Some(Code::RateLimited);

#[tokio::test]
async fn a_key_is_good_until_it_is_taken_back_and_no_longer_than_a_moment_after() {
    let (store, keys) = place();
    let shown = make(&store, None).await;
    assert_eq!(keys.told(&shown.text()).await, None);
    store.revoke_key(&shown.id).await.unwrap();
    keys.age(&shown, LONG);
    assert_eq!(keys.told(&shown.text()).await, NO);
    assert!(!keys.memory.has_met(&shown.id), "nothing is believed any more");
    let refusal = keys.caller(&HeaderMap::new(), HERE, Needs::Store).await.unwrap_err();
    assert_eq!(refusal.0.code, Code::Unauthenticated);
}

#[tokio::test]
async fn wrong_keys_are_slowed_down_and_hold_up_no_good_one_from_the_same_address() {
    let (store, keys) = place();
    let (shown, fresh) = (make(&store, None).await, make(&store, None).await);
    assert_eq!(keys.told(&shown.text()).await, None);
    // A wrong secret of a right id is as wrong as any other.
    for _ in 0..WRONG.0 / 2 {
        assert_eq!(keys.told(&wrong_secret(&shown)).await, NO);
        assert_eq!(keys.told(&Shown::fresh().text()).await, NO);
    }
    let none = Shown::fresh().text();
    for wrong in [&wrong_secret(&shown), &wrong_secret(&fresh), &none, &none, "nonsense"] {
        assert_eq!(keys.told(wrong).await, SLOWER);
    }
    // Whoever is known, and whoever is not.
    assert_eq!(keys.told(&shown.text()).await, None);
    assert_eq!(keys.told(&fresh.text()).await, None);
    let other = make(&store, None).await;
    assert_eq!(keys.told(&other.text()).await, None);
    keys.age(&other, LONG);
    assert_eq!(keys.told(&other.text()).await, None, "nor whoever comes again after a while");
    // Nothing was taken by those who were good.
    assert_eq!(
        keys.caller(&with(&none), Some("10.0.0.7".parse().unwrap()), Needs::Store).await.unwrap_err().0.code,
        NO.unwrap()
    );
}

#[tokio::test]
async fn many_wrong_keys_at_once_are_as_many_as_one_after_the_other() {
    let (_store, keys) = place();
    let guesses: Vec<String> = (0..3 * WRONG.0).map(|_| Shown::fresh().text()).collect();
    let answers = join_all(guesses.iter().map(|guess| keys.told(guess))).await;
    let count = |code| answers.iter().filter(|answer| **answer == code).count();
    assert_eq!((count(NO), count(SLOWER)), (WRONG.0 as usize, 2 * WRONG.0 as usize));
}

#[tokio::test]
async fn a_key_is_used_as_often_as_it_may_be_also_when_it_is_looked_at_again() {
    let (store, keys) = place();
    let limit = RateLimit::new(1, Duration::from_secs(3_600), 2).unwrap();
    let shown = make(&store, Some(limit)).await;
    assert_eq!(keys.told(&shown.text()).await, None);
    keys.age(&shown, LONG);
    assert_eq!(keys.told(&shown.text()).await, None);
    assert_eq!(keys.told(&shown.text()).await, SLOWER);
    // A wrong secret does not make it anew.
    keys.age(&shown, LONG);
    assert_eq!(keys.told(&wrong_secret(&shown)).await, NO);
    assert_eq!(keys.told(&shown.text()).await, SLOWER);
}

#[tokio::test]
async fn all_who_show_the_same_key_at_once_share_one_look() {
    let (store, keys) = place();
    let (new, met) = (make(&store, None).await, make(&store, None).await);
    assert_eq!(keys.told(&met.text()).await, None);
    keys.age(&met, LONG);
    for (key, line) in [(&new, Line::New), (&met, Line::Met)] {
        let held = keys.looks.hold(line).await;
        let (right, wrong) = (key.text(), wrong_secret(key));
        let asked = async {
            let right = join_all((0..20).map(|_| keys.told(&right)));
            futures_util::join!(right, keys.told(&wrong))
        };
        let release = async {
            // All have asked by the time that this is polled.
            assert_eq!(keys.looks.count(), 1);
            drop(held);
        };
        let ((right, wrong), ()) = futures_util::join!(asked, release);
        assert!(right.iter().all(Option::is_none), "{right:?}");
        assert_eq!(wrong, NO);
        assert_eq!(keys.looks.count(), 0);
    }
}

#[tokio::test]
async fn a_key_that_is_used_is_looked_at_again_while_nobody_waits() {
    let (store, keys) = place();
    let shown = make(&store, None).await;
    assert_eq!(keys.told(&shown.text()).await, None);
    let soon = Duration::from_millis(1_100);
    keys.age(&shown, soon);
    let held = keys.looks.hold(Line::Met).await;
    for _ in 0..10 {
        assert_eq!(keys.told(&shown.text()).await, None);
    }
    assert_eq!(keys.looks.count(), 1);
    drop(held);
    // Joins the look, and is answered when it is over.
    keys.looks.look(&shown.id, Line::Met).await.unwrap().unwrap();
    let Belief::Good(known) = keys.memory.of(&shown.id, Instant::now()) else { panic!("forgotten") };
    assert!(known.again > Instant::now(), "it was seen just now");
    drop(known);
    // One that was taken back meanwhile is not believed because somebody has just used it.
    store.revoke_key(&shown.id).await.unwrap();
    keys.age(&shown, soon);
    assert_eq!(keys.told(&shown.text()).await, None);
    let _ = keys.looks.look(&shown.id, Line::Met).await;
    assert_eq!(keys.told(&shown.text()).await, NO);
}

#[tokio::test]
async fn a_look_that_began_too_long_ago_is_not_joined() {
    let (store, keys) = place();
    let shown = make(&store, None).await;
    let _held = keys.looks.hold(Line::New).await;
    let first = keys.looks.begin(&shown.id, Line::New).unwrap();
    assert!(keys.looks.begin(&shown.id, Line::New).unwrap().same_channel(&first));
    keys.looks.age(&shown.id, Line::New, LONG);
    assert!(!keys.looks.begin(&shown.id, Line::New).unwrap().same_channel(&first));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_look_for_ever_nor_do_more_than_have_room() {
    let (store, keys) = place();
    let [good, other] = [make(&store, None).await, make(&store, None).await];
    // Everybody from here is doubted.
    for _ in 0..WRONG.0 {
        assert_eq!(keys.told("nonsense").await, NO);
    }
    let held = keys.looks.hold(Line::Doubted).await;
    let begun = tokio::time::Instant::now();
    assert_eq!(keys.told(&good.text()).await, Some(Code::Unavailable));
    assert_eq!(begun.elapsed(), PATIENCE);
    while keys.looks.count() > 0 {
        tokio::task::yield_now().await;
    }
    let (width, length) = Line::Doubted.width_and_length();
    let waiting: Vec<_> =
        (0..width + length).map(|_| keys.looks.begin(&Shown::fresh().id, Line::Doubted).unwrap()).collect();
    assert_eq!(keys.told(&good.text()).await, SLOWER);
    // Others do not wait for them.
    let from = Some("10.0.0.7".parse().unwrap());
    assert!(keys.caller(&with(&other.text()), from, Needs::Store).await.is_ok());
    assert_eq!(begun.elapsed(), PATIENCE);
    for mut look in waiting {
        look.wait_for(|shown| matches!(shown, Some(Err(_)))).await.unwrap();
    }
    assert_eq!(begun.elapsed(), 2 * PATIENCE);
    drop(held);
    assert_eq!(keys.told(&good.text()).await, None, "and those who come later find room");
}

#[tokio::test]
async fn whoever_waits_with_a_key_is_found_out_when_it_ends_and_shares_the_look() {
    let (store, keys) = place();
    let shown = make(&store, None).await;
    let caller = keys.caller(&with(&shown.text()), HERE, Needs::Store).await.unwrap();
    assert_eq!(caller.key(), Some(&shown.id));
    store.revoke_key(&shown.id).await.unwrap();
    assert!(!keys.is_over(&caller).await, "what was just seen is believed");
    keys.age(&shown, LONG);
    let held = keys.looks.hold(Line::Met).await;
    let all = join_all((0..20).map(|_| keys.is_over(&caller)));
    let release = async {
        assert_eq!(keys.looks.count(), 1);
        drop(held);
    };
    let (all, ()) = futures_util::join!(all, release);
    assert_eq!(all, [true; 20]);
    assert_eq!(keys.check(&caller).await.unwrap_err().0.code, Code::Unauthenticated);
    // Where nobody shows a key there is none to lose.
    assert!(keys.check(&Caller::anything("anybody".into())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nobody_who_waits_loses_anything_while_the_store_is_away() {
    let (store, keys) = place();
    let shown = make(&store, None).await;
    let caller = keys.caller(&with(&shown.text()), HERE, Needs::Store).await.unwrap();
    store.revoke_key(&shown.id).await.unwrap();
    keys.age(&shown, LONG);
    let held = keys.looks.hold(Line::Met).await;
    assert_eq!(keys.check(&caller).await.unwrap_err().0.code, Code::Unavailable, "but is given nothing either");
    assert!(!keys.is_over(&caller).await);
    drop(held);
    assert!(keys.is_over(&caller).await);
}

const AWAY: Option<Code> = Some(Code::Unavailable);

#[tokio::test(start_paused = true)]
async fn what_needs_nothing_of_the_store_is_answered_while_that_is_away_to_keys_that_were_good_lately() {
    let (store, keys) = place();
    let [good, old, slow] = [make(&store, None).await, make(&store, None).await, make(&store, None).await];
    for key in [&good, &old, &slow] {
        assert_eq!(keys.told(&key.text()).await, None);
        keys.age(key, LONG);
    }
    let held = [keys.looks.hold(Line::Met).await, keys.looks.hold(Line::New).await];
    assert_eq!(keys.told_alone(&good.text()).await, None);
    assert_eq!(keys.told(&good.text()).await, AWAY, "nothing else is done by it");
    assert_eq!(keys.told_alone(&wrong_secret(&good)).await, AWAY, "nor by another secret");
    assert_eq!(keys.told_alone(&make(&store, None).await.text()).await, AWAY, "nor by a key that was never seen");
    keys.age(&old, REMEMBERED - 2 * LONG);
    assert_eq!(keys.told_alone(&old.text()).await, None);
    keys.age(&old, LONG);
    assert_eq!(keys.told_alone(&old.text()).await, AWAY, "nor for longer than is promised");
    drop(held);
    assert_eq!(keys.told_alone(&old.text()).await, None, "until it is seen again");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_has_ended_is_not_remembered_while_the_store_is_away() {
    let (store, keys) = place();
    let soon = Timestamp::now() + Duration::from_secs(60);
    let [refused, here, ends] =
        [make(&store, None).await, make(&store, None).await, make_until(&store, None, Some(soon)).await];
    for key in [&refused, &here, &ends] {
        assert_eq!(keys.told(&key.text()).await, None);
        keys.age(key, LONG);
    }
    // One was seen to be taken back, by whomever; one was taken back here.
    store.revoke_key(&refused.id).await.unwrap();
    assert_eq!(keys.told(&refused.text()).await, NO);
    store.revoke_key(&here.id).await.unwrap();
    keys.forget(&here.id);
    assert_eq!(keys.told_alone(&here.text()).await, NO);
    let _held = [keys.looks.hold(Line::Met).await, keys.looks.hold(Line::New).await];
    assert_eq!(keys.told_alone(&ends.text()).await, None);
    keys.age(&ends, Duration::from_secs(60));
    // As long after as is believed that they are nobody's.
    keys.memory.age_nobodys(LONG);
    for key in [&refused, &here, &ends] {
        assert_eq!(keys.told_alone(&key.text()).await, AWAY);
    }
}

#[tokio::test]
async fn a_look_that_began_before_a_key_was_taken_back_does_not_bring_it_back() {
    let (store, keys) = place();
    let shown = make(&store, None).await;
    let asked_at = Instant::now();
    let seen = store.key(&shown.id).await.unwrap();
    store.revoke_key(&shown.id).await.unwrap();
    keys.forget(&shown.id);
    assert!(keys.memory.keep(&shown.id, seen, asked_at).is_none());
    assert!(!keys.memory.has_met(&shown.id));
    assert_eq!(keys.told(&shown.text()).await, NO);
}

#[tokio::test]
async fn whoever_shows_no_key_that_can_be_read_is_told_how_and_whoever_shows_a_wrong_one_that_it_is() {
    let (_store, keys) = place();
    let told = async |header: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, header.parse().unwrap());
        let problem = keys.caller(&headers, HERE, Needs::Store).await.unwrap_err().0;
        assert_eq!(problem.code, Code::Unauthenticated);
        problem.detail
    };
    let key = Shown::fresh().text();
    for header in ["Basic dTpw", "Bearer", &key] {
        assert_eq!(told(header).await, HOW, "{header}");
    }
    for header in ["Bearer nonsense", &format!("bearer {key}")] {
        assert_eq!(told(header).await, NONE, "{header}");
    }
    let mut twice = with(&key);
    twice.append(header::AUTHORIZATION, "Bearer x".parse().unwrap());
    assert_eq!(keys.caller(&twice, HERE, Needs::Store).await.unwrap_err().0.detail, HOW);
}
