//! Looks at the cluster, shared by all who ask: one at a time, a while between two, and none while nobody asks.
//!
//! Whoever asks has the look that has just ended, or waits for the next one. So a page that asks again after each answer has
//! each look as soon as it is there, and a second page costs the cluster nothing.

use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::api::Api;
use crate::failure::Failure;
use crate::status::answer::ClusterStatus;
use crate::status::gather::{Question, gather};
use per_node::proto::report::API_VERSION;

/// The kind of what the page is told.
const KIND: &str = "UiState";
/// How long a page waits for a look; then it asks again.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// What the page is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    api_version: &'static str,
    kind: &'static str,
    /// The look's number; the page asks for the next one with it.
    look: u64,
    took_ms: u128,
    every_ms: u128,
    /// Why this look saw nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ClusterStatus>,
}

#[derive(Clone)]
struct Look {
    number: u64,
    ended: Instant,
    json: Bytes,
}

/// The latest look, and those who wait for the next.
pub struct Looks {
    latest: watch::Sender<Option<Look>>,
    wanted: Notify,
    every: Duration,
}

impl Looks {
    /// With this much time between two.
    pub fn new(every: Duration) -> Self {
        Self { latest: watch::Sender::new(None), wanted: Notify::new(), every }
    }

    /// A look later than `after` that is not old, as JSON; `None` where there is none within [`WAIT_MAX`].
    pub async fn next(&self, after: u64) -> Option<Bytes> {
        let mut latest = self.latest.subscribe();
        let asked = Instant::now();
        let fits =
            |look: &Look| look.number > after && (look.ended >= asked || asked - look.ended < self.every);
        if let Some(look) = latest.borrow_and_update().as_ref().filter(|look| fits(look)) {
            return Some(look.json.clone());
        }
        self.wanted.notify_one();
        let ended = tokio::time::timeout(WAIT_MAX, latest.wait_for(|look| look.as_ref().is_some_and(fits)));
        ended.await.ok()?.ok()?.as_ref().map(|look| look.json.clone())
    }

    /// Looks whenever somebody waits, for ever.
    pub async fn keep_looking(&self, api: &Api, question: &Question) {
        let mut number = 0;
        loop {
            self.wanted.notified().await;
            number += 1;
            let began = Instant::now();
            let seen = gather(api, question).await;
            self.tell(number, began, seen);
            tokio::time::sleep(self.every).await;
        }
    }

    fn tell(&self, number: u64, began: Instant, seen: Result<ClusterStatus, Failure>) {
        let (status, failure) = match seen {
            Ok(status) => (Some(status), None),
            Err(failure) => (None, Some(failure.to_string())),
        };
        let ended = Instant::now();
        let (took_ms, every_ms) = ((ended - began).as_millis(), self.every.as_millis());
        let state =
            State { api_version: API_VERSION, kind: KIND, look: number, took_ms, every_ms, failure, status };
        // Maps with keys that are no strings are what could not be written; there is none.
        let json = serde_json::to_vec(&state).unwrap_or_default().into();
        self.latest.send_replace(Some(Look { number, ended, json }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(json: &Bytes) -> u64 {
        let state: serde_json::Value = serde_json::from_slice(json).expect("JSON");
        state["look"].as_u64().expect("a number")
    }

    fn looks() -> Looks {
        Looks::new(Duration::from_secs(5))
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_the_latest_look_waits_for_the_next_and_who_has_none_does_not() {
        let looks = looks();
        looks.tell(1, Instant::now(), Err(Failure::Missing { why: "nothing".into() }));
        assert_eq!(looks.next(0).await.as_ref().map(number), Some(1));
        let (next, ()) = tokio::join!(looks.next(1), async {
            looks.wanted.notified().await;
            looks.tell(2, Instant::now(), Err(Failure::Missing { why: "nothing".into() }));
        });
        assert_eq!(next.as_ref().map(number), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_look_is_shown_to_nobody_and_nobody_waits_for_ever() {
        let looks = looks();
        looks.tell(1, Instant::now(), Err(Failure::Missing { why: "nothing".into() }));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(looks.next(0).await, None, "it asked for another look, and none came");
        looks.wanted.notified().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_saw_nothing_says_why() {
        let looks = looks();
        looks.tell(1, Instant::now(), Err(Failure::Missing { why: "<b>gone</b>".into() }));
        let json = looks.next(0).await.expect("a look");
        let state: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        assert_eq!((&state["failure"], &state["status"]), (&"<b>gone</b>".into(), &serde_json::Value::Null));
        assert_eq!((&state["kind"], &state["everyMs"]), (&"UiState".into(), &5000.into()));
    }
}
