//! Who leads: a candidacy repeated for ever.
//!
//! A node that leads renews at a third of its term. It counts the term from the moment it asked, on its own monotonic
//! clock, and stops a little before the end: by then it has either been answered again or must assume that somebody
//! else leads. What it may still have under way is refused by the store, which knows the epoch.

use std::time::{Duration, Instant};

use orchestrix_store::{Epoch, Leadership, Store, StoreError, metrics};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{options::CoordinatorOptions, pace::jittered, status::Board};

/// The right to lead, until when this node may rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reign {
    pub(crate) epoch: Epoch,
    pub(crate) until: Instant,
}

impl Reign {
    /// Whether this node may still act on it.
    pub(crate) fn is_current(&self) -> bool {
        Instant::now() < self.until
    }
}

/// How often a node that follows looks whether somebody has resigned.
const LOOK: Duration = Duration::from_millis(600);
/// How soon a candidacy that was not answered is repeated.
const AGAIN: Duration = Duration::from_millis(250);
/// The part of a term that is given up to be safe from clocks that run unevenly: one in this many.
const MARGIN: u32 = 10;

/// A candidacy and what came of it.
pub(crate) struct Candidate<'a> {
    store: &'a dyn Store,
    options: &'a CoordinatorOptions,
    board: &'a Board,
    reign: &'a watch::Sender<Option<Reign>>,
    /// The latest epoch in which the store refused something that this node did.
    deposed: watch::Receiver<Option<Epoch>>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        options: &'a CoordinatorOptions,
        board: &'a Board,
        reign: &'a watch::Sender<Option<Reign>>,
        deposed: watch::Receiver<Option<Epoch>>,
    ) -> Self {
        Self { store, options, board, reign, deposed }
    }

    /// Stands again and again; ends only by being dropped.
    pub(crate) async fn run(&self) {
        let mut deposed = self.deposed.clone();
        loop {
            let pause = self.stand().await;
            tokio::select! {
                () = sleep(pause) => {}
                // It may come late, when this node leads anew: then it says nothing about the epoch that is.
                Ok(()) = deposed.changed() => {
                    let refused = *deposed.borrow_and_update();
                    if self.held().is_some_and(|reign| Some(reign.epoch) == refused) {
                        self.step_down();
                    }
                }
            }
        }
    }

    /// Stands once; answers how long to wait before the next time.
    async fn stand(&self) -> Duration {
        let term = self.options.term;
        let begun = Instant::now();
        let held = self.held();
        let limit = held.map_or(term, |reign| reign.until.saturating_duration_since(begun)).max(AGAIN);
        let asked = self.store.campaign_for_leadership(self.options.name(), term, held.map(|reign| reign.epoch));
        let answer = timeout(limit, asked)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the store did not answer in time".into())));
        self.board.contact(answer.as_ref().map(drop));
        let pause = match answer {
            Ok(Leadership::Leading(epoch)) => {
                self.lead(Reign { epoch, until: begun + (term - term / MARGIN) });
                jittered(term / 3).saturating_sub(begun.elapsed())
            }
            Ok(Leadership::Following { leader, epoch, ends_in }) => {
                self.step_down();
                self.board.follows(leader.filter(|_| !ends_in.is_zero()), epoch);
                jittered(LOOK).min(ends_in + jittered(Duration::from_millis(50)))
            }
            Err(error) => {
                tracing::warn!(node = %self.options.name(), %error, "a candidacy was not answered");
                if !self.held().is_some_and(|reign| reign.is_current()) {
                    self.step_down();
                    self.board.unled();
                }
                jittered(AGAIN)
            }
        };
        // Again and again, whether or not it is news: what nobody says any more is forgotten.
        metrics::leads(self.options.name(), self.held().is_some());
        pause
    }

    fn held(&self) -> Option<Reign> {
        *self.reign.borrow()
    }

    fn lead(&self, reign: Reign) {
        let begins = self.held().is_none_or(|held| held.epoch != reign.epoch);
        self.reign.send_replace(Some(reign));
        if begins {
            tracing::info!(node = %self.options.name(), epoch = %reign.epoch, "leads");
            self.board.leads(self.options.name(), reign.epoch);
        }
    }

    fn step_down(&self) {
        if let Some(reign) = self.reign.send_replace(None) {
            tracing::info!(node = %self.options.name(), epoch = %reign.epoch, "leads no longer");
            metrics::leads(self.options.name(), false);
        }
    }

    /// Gives up what is held, so that another can lead at once.
    pub(crate) async fn resign(&self) {
        let Some(reign) = self.reign.send_replace(None) else { return };
        metrics::leads(self.options.name(), false);
        match timeout(self.options.term, self.store.resign_leadership(self.options.name(), reign.epoch)).await {
            Ok(Ok(_)) => tracing::info!(node = %self.options.name(), epoch = %reign.epoch, "resigned"),
            Ok(Err(error)) => tracing::warn!(%error, "could not resign; the term runs out by itself"),
            Err(_) => tracing::warn!("could not resign in time; the term runs out by itself"),
        }
    }
}
