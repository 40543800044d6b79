//! The rate limit of a provider. After "too many requests" no request is sent until the wait is
//! over, and then only as many at once as the provider has shown to bear.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use asyncagents_core::lock::lock;

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};

use crate::request::{AnswerEvent, OnEvent};

/// Between two keep-alives of a request that waits.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Keeps the end of a wait within what a clock can hold.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Shared by all requests to a provider.
#[derive(Default)]
pub(crate) struct RateLimit(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many tickets were given out.
    tickets: u64,
    /// Requests that wait. The smallest ticket goes first.
    waiting: BTreeMap<u64, Arc<Notify>>,
    in_flight: usize,
    limit: Option<Limit>,
    closed: Option<Closed>,
    /// Counts how often the limit was lowered.
    round: u64,
}

/// How many may be in flight.
#[derive(Clone, Copy)]
struct Limit {
    now: usize,
    /// A limit that has grown to this is none any more.
    free_at: usize,
}

#[derive(Clone)]
struct Closed {
    until: Instant,
    why: String,
}

/// A place in the queue: who came first goes first.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(u64);

/// One request in flight. It ends when this is dropped.
pub(crate) struct Permit {
    rate_limit: Arc<RateLimit>,
    round: u64,
}

/// What keeps a request from being sent.
enum Obstacle {
    /// The provider asks for a wait.
    Closed(Closed),
    /// Others are in flight or come first.
    Others,
}

impl RateLimit {
    pub(crate) fn ticket(&self) -> Ticket {
        let mut state = self.state();
        state.tickets += 1;
        Ticket(state.tickets)
    }

    /// Waits for its turn. `announced`: the caller knows already why it waits.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        ticket: Ticket,
        announced: bool,
        on_event: OnEvent<'_>,
    ) -> Permit {
        let place = Place::take(self, ticket);
        let mut announced = announced;
        loop {
            let obstacle = match place.try_enter() {
                Ok(permit) => return permit,
                Err(obstacle) => obstacle,
            };
            match &obstacle {
                Obstacle::Closed(Closed { until, why }) if !announced => {
                    announced = true;
                    on_event(AnswerEvent::Retry {
                        why: why.clone(),
                        after: until.saturating_duration_since(Instant::now()),
                    });
                }
                Obstacle::Closed(_) | Obstacle::Others => on_event(AnswerEvent::KeepAlive),
            }
            let _ = timeout(KEEP_ALIVE, place.change(obstacle)).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl Permit {
    /// The provider has answered: one more may be in flight.
    pub(crate) fn succeeded(self) {
        let mut state = self.rate_limit.state();
        // Without a limit all who wait go at once, so there must be room for all.
        let crowd = state.in_flight + state.waiting.len();
        // A request from before the last rate limit proves nothing.
        if self.round == state.round
            && let Some(limit) = &mut state.limit
        {
            limit.now += 1;
            if limit.now >= limit.free_at.max(crowd) {
                state.limit = None;
            }
        }
    }

    /// Too many requests: none is sent for `wait`, and then half as many at once.
    pub(crate) fn limited(self, wait: Duration, why: &str) {
        let mut state = self.rate_limit.state();
        let until = Instant::now() + wait.min(FOREVER);
        if state
            .closed
            .as_ref()
            .is_none_or(|closed| closed.until < until)
        {
            let why = why.to_owned();
            state.closed = Some(Closed { until, why });
        }
        // Requests that are turned away together count as one rate limit, not as twenty.
        if self.round == state.round {
            state.round += 1;
            let before = state.in_flight;
            let known = state.limit.map_or(before * 2, |limit| limit.free_at);
            state.limit = Some(Limit {
                now: (before / 2).max(1),
                free_at: known.max(2),
            });
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.rate_limit.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.wake_first();
    }
}

impl State {
    fn wake_first(&self) {
        if let Some((_, first)) = self.waiting.first_key_value() {
            first.notify_one();
        }
    }
}

/// A request in the queue. Dropping it leaves the queue.
struct Place<'a> {
    rate_limit: &'a Arc<RateLimit>,
    ticket: u64,
    wake: Arc<Notify>,
}

impl<'a> Place<'a> {
    fn take(rate_limit: &'a Arc<RateLimit>, Ticket(ticket): Ticket) -> Self {
        let wake = Arc::new(Notify::new());
        rate_limit.state().waiting.insert(ticket, Arc::clone(&wake));
        Self {
            rate_limit,
            ticket,
            wake,
        }
    }

    fn try_enter(&self) -> Result<Permit, Obstacle> {
        let mut state = self.rate_limit.state();
        state
            .closed
            .take_if(|closed| closed.until <= Instant::now());
        if let Some(closed) = &state.closed {
            return Err(Obstacle::Closed(closed.clone()));
        }
        let first = state.waiting.first_key_value().map(|(ticket, _)| *ticket);
        let full = state
            .limit
            .is_some_and(|limit| state.in_flight >= limit.now);
        if full || first != Some(self.ticket) {
            return Err(Obstacle::Others);
        }
        state.in_flight += 1;
        Ok(Permit {
            rate_limit: Arc::clone(self.rate_limit),
            round: state.round,
        })
    }

    /// Until it may be worth trying again.
    async fn change(&self, obstacle: Obstacle) {
        match obstacle {
            Obstacle::Closed(closed) => sleep_until(closed.until).await,
            Obstacle::Others => self.wake.notified().await,
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.rate_limit.state();
        state.waiting.remove(&self.ticket);
        state.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use tokio::{sync::mpsc, time::sleep};

    use super::*;

    fn deaf(_: AnswerEvent<'_>) {}

    async fn through(rate_limit: &Arc<RateLimit>) -> Permit {
        rate_limit
            .enter(rate_limit.ticket(), false, &mut deaf)
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_gate_holds_nobody_up() {
        let rate_limit = Arc::new(RateLimit::default());
        let start = Instant::now();
        let mut passes = Vec::new();
        for _ in 0..100 {
            passes.push(through(&rate_limit).await);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn after_too_many_requests_everybody_waits_and_hears_why() {
        let rate_limit = Arc::new(RateLimit::default());
        through(&rate_limit)
            .await
            .limited(Duration::from_secs(25), "rate limit");
        let start = Instant::now();
        let mut heard = Vec::new();
        let mut on_event = |what: AnswerEvent<'_>| match what {
            AnswerEvent::Retry { why, after } => heard.push(format!("{why} {}", after.as_secs())),
            other => heard.push(format!("{other:?}")),
        };
        let permit = rate_limit
            .enter(rate_limit.ticket(), false, &mut on_event)
            .await;
        drop(permit);
        assert_eq!(start.elapsed(), Duration::from_secs(25));
        assert_eq!(heard, ["rate limit 25", "KeepAlive", "KeepAlive"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_wait_counts() {
        let rate_limit = Arc::new(RateLimit::default());
        let (one, two) = (through(&rate_limit).await, through(&rate_limit).await);
        one.limited(Duration::from_secs(9), "first");
        two.limited(Duration::from_secs(3), "second");
        let start = Instant::now();
        through(&rate_limit).await;
        assert_eq!(start.elapsed(), Duration::from_secs(9));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_halved_once_and_grows_back() {
        let rate_limit = Arc::new(RateLimit::default());
        let mut crowd = Vec::new();
        for _ in 0..8 {
            crowd.push(through(&rate_limit).await);
        }
        for permit in crowd {
            permit.limited(Duration::from_secs(1), "429");
        }
        let now = |rate_limit: &RateLimit| rate_limit.state().limit.map(|limit| limit.now);
        assert_eq!(now(&rate_limit), Some(4));
        for expected in [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
            through(&rate_limit).await.succeeded();
            assert_eq!(now(&rate_limit), Some(expected));
        }
        through(&rate_limit).await.succeeded();
        assert_eq!(
            now(&rate_limit),
            None,
            "twice what it was: no limit any more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_calms_down_in_order_and_everybody_gets_through() {
        let rate_limit = Arc::new(RateLimit::default());
        let (in_flight, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        through(&rate_limit)
            .await
            .limited(Duration::from_secs(1), "429");
        let (done, mut order) = mpsc::unbounded_channel();
        for asker in 0..20 {
            let ticket = rate_limit.ticket();
            let (rate_limit, done) = (Arc::clone(&rate_limit), done.clone());
            let (in_flight, peak) = (Arc::clone(&in_flight), Arc::clone(&peak));
            tokio::spawn(async move {
                let permit = rate_limit.enter(ticket, false, &mut deaf).await;
                peak.fetch_max(in_flight.fetch_add(1, SeqCst) + 1, SeqCst);
                done.send(asker).expect("a listener");
                sleep(Duration::from_secs(1)).await;
                in_flight.fetch_sub(1, SeqCst);
                // Nothing is learned here, so the limit stays at one.
                drop(permit);
            });
        }
        drop(done);
        let mut came = Vec::new();
        while let Some(asker) = order.recv().await {
            came.push(asker);
        }
        assert_eq!(came, (0..20).collect::<Vec<_>>());
        assert_eq!(peak.load(SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_does_not_let_everybody_go() {
        let rate_limit = Arc::new(RateLimit::default());
        through(&rate_limit)
            .await
            .limited(Duration::from_secs(1), "429");
        let first = through(&rate_limit).await;
        let mut crowd = tokio::task::JoinSet::new();
        for _ in 0..999 {
            let rate_limit = Arc::clone(&rate_limit);
            crowd.spawn(async move { through(&rate_limit).await });
        }
        sleep(Duration::from_secs(1)).await;
        first.succeeded();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rate_limit.state().in_flight, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_does_not_block_the_others() {
        let rate_limit = Arc::new(RateLimit::default());
        through(&rate_limit).await.limited(Duration::ZERO, "429");
        let busy = through(&rate_limit).await;
        let impatient = timeout(Duration::from_secs(1), through(&rate_limit)).await;
        assert!(impatient.is_err());
        let (waiting, ()) = tokio::join!(through(&rate_limit), async {
            sleep(Duration::from_secs(1)).await;
            drop(busy);
        });
        drop(waiting);
        let state = rate_limit.state();
        assert_eq!((state.in_flight, state.waiting.len()), (0, 0));
    }
}
