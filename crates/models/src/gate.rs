//! One door per provider. After "too many requests" nobody goes through it until the wait is
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

use crate::request::{Hear, Heard};

/// Somebody who waits is told so at least this often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// No clock reaches further than it must.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The door.
#[derive(Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many tickets were given out.
    tickets: u64,
    /// Who waits. The smallest ticket goes first.
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
pub(crate) struct Pass {
    gate: Arc<Gate>,
    round: u64,
}

/// What keeps somebody from going through.
enum Obstacle {
    /// The provider wants a pause.
    Closed { until: Instant, why: String },
    /// Others are in flight or come first.
    Others,
}

impl Gate {
    pub(crate) fn ticket(&self) -> Ticket {
        let mut state = self.state();
        state.tickets += 1;
        Ticket(state.tickets)
    }

    /// Waits for its turn. `told`: whoever listens knows already why it waits.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        ticket: Ticket,
        told: bool,
        hear: Hear<'_>,
    ) -> Pass {
        let place = Place::take(self, ticket);
        let mut told = told;
        loop {
            let obstacle = match place.go() {
                Ok(pass) => return pass,
                Err(obstacle) => obstacle,
            };
            match &obstacle {
                Obstacle::Closed { until, why } if !told => {
                    told = true;
                    hear(Heard::Again {
                        why: why.clone(),
                        after: until.saturating_duration_since(Instant::now()),
                    });
                }
                Obstacle::Closed { .. } | Obstacle::Others => hear(Heard::Alive),
            }
            let _ = timeout(SIGN_OF_LIFE, place.change(obstacle)).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl Pass {
    /// The provider has answered: one more may be in flight.
    pub(crate) fn succeeded(self) {
        let mut state = self.gate.state();
        // Without a limit all who wait go at once, so there must be room for all.
        let crowd = state.in_flight + state.waiting.len();
        // Who was let in before the last trouble proves nothing.
        if self.round == state.round
            && let Some(limit) = &mut state.limit
        {
            limit.now += 1;
            if limit.now >= limit.free_at.max(crowd) {
                state.limit = None;
            }
        }
    }

    /// Too many requests: nobody goes for `wait`, and then half as many at once.
    pub(crate) fn limited(self, wait: Duration, why: &str) {
        let mut state = self.gate.state();
        let until = Instant::now() + wait.min(FOREVER);
        if state
            .closed
            .as_ref()
            .is_none_or(|closed| closed.until < until)
        {
            let why = why.to_owned();
            state.closed = Some(Closed { until, why });
        }
        // A crowd that is turned away together is one trouble, not twenty.
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

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
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

/// Somebody in the queue. Who gives up leaves it.
struct Place<'a> {
    gate: &'a Arc<Gate>,
    ticket: u64,
    news: Arc<Notify>,
}

impl<'a> Place<'a> {
    fn take(gate: &'a Arc<Gate>, Ticket(ticket): Ticket) -> Self {
        let news = Arc::new(Notify::new());
        gate.state().waiting.insert(ticket, Arc::clone(&news));
        Self { gate, ticket, news }
    }

    fn go(&self) -> Result<Pass, Obstacle> {
        let mut state = self.gate.state();
        if let Some(Closed { until, why }) = state.closed.clone() {
            if Instant::now() < until {
                return Err(Obstacle::Closed { until, why });
            }
            state.closed = None;
        }
        let first = state.waiting.first_key_value().map(|(ticket, _)| *ticket);
        let full = state
            .limit
            .is_some_and(|limit| state.in_flight >= limit.now);
        if full || first != Some(self.ticket) {
            return Err(Obstacle::Others);
        }
        state.in_flight += 1;
        Ok(Pass {
            gate: Arc::clone(self.gate),
            round: state.round,
        })
    }

    /// Until it may be worth trying again.
    async fn change(&self, obstacle: Obstacle) {
        match obstacle {
            Obstacle::Closed { until, .. } => sleep_until(until).await,
            Obstacle::Others => self.news.notified().await,
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.waiting.remove(&self.ticket);
        state.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use tokio::{sync::mpsc, time::sleep};

    use super::*;

    fn deaf(_: Heard<'_>) {}

    async fn through(gate: &Arc<Gate>) -> Pass {
        gate.enter(gate.ticket(), false, &mut deaf).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_gate_holds_nobody_up() {
        let gate = Arc::new(Gate::default());
        let start = Instant::now();
        let mut passes = Vec::new();
        for _ in 0..100 {
            passes.push(through(&gate).await);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn after_too_many_requests_everybody_waits_and_hears_why() {
        let gate = Arc::new(Gate::default());
        through(&gate)
            .await
            .limited(Duration::from_secs(25), "rate limit");
        let start = Instant::now();
        let mut heard = Vec::new();
        let mut hear = |what: Heard<'_>| match what {
            Heard::Again { why, after } => heard.push(format!("{why} {}", after.as_secs())),
            other => heard.push(format!("{other:?}")),
        };
        let pass = gate.enter(gate.ticket(), false, &mut hear).await;
        drop(pass);
        assert_eq!(start.elapsed(), Duration::from_secs(25));
        assert_eq!(heard, ["rate limit 25", "Alive", "Alive"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_wait_counts() {
        let gate = Arc::new(Gate::default());
        let (one, two) = (through(&gate).await, through(&gate).await);
        one.limited(Duration::from_secs(9), "first");
        two.limited(Duration::from_secs(3), "second");
        let start = Instant::now();
        through(&gate).await;
        assert_eq!(start.elapsed(), Duration::from_secs(9));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_halved_once_and_grows_back() {
        let gate = Arc::new(Gate::default());
        let mut crowd = Vec::new();
        for _ in 0..8 {
            crowd.push(through(&gate).await);
        }
        for pass in crowd {
            pass.limited(Duration::from_secs(1), "429");
        }
        let now = |gate: &Gate| gate.state().limit.map(|limit| limit.now);
        assert_eq!(now(&gate), Some(4));
        for expected in [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
            through(&gate).await.succeeded();
            assert_eq!(now(&gate), Some(expected));
        }
        through(&gate).await.succeeded();
        assert_eq!(now(&gate), None, "twice what it was: no limit any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_storm_calms_down_in_order_and_everybody_gets_through() {
        let gate = Arc::new(Gate::default());
        let (in_flight, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        through(&gate).await.limited(Duration::from_secs(1), "429");
        let (done, mut order) = mpsc::unbounded_channel();
        for asker in 0..20 {
            let ticket = gate.ticket();
            let (gate, done) = (Arc::clone(&gate), done.clone());
            let (in_flight, peak) = (Arc::clone(&in_flight), Arc::clone(&peak));
            tokio::spawn(async move {
                let pass = gate.enter(ticket, false, &mut deaf).await;
                peak.fetch_max(in_flight.fetch_add(1, SeqCst) + 1, SeqCst);
                done.send(asker).expect("a listener");
                sleep(Duration::from_secs(1)).await;
                in_flight.fetch_sub(1, SeqCst);
                // Nothing is learned here, so the limit stays at one.
                drop(pass);
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
        let gate = Arc::new(Gate::default());
        through(&gate).await.limited(Duration::from_secs(1), "429");
        let first = through(&gate).await;
        let mut crowd = tokio::task::JoinSet::new();
        for _ in 0..999 {
            let gate = Arc::clone(&gate);
            crowd.spawn(async move { through(&gate).await });
        }
        sleep(Duration::from_secs(1)).await;
        first.succeeded();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(gate.state().in_flight, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_does_not_block_the_others() {
        let gate = Arc::new(Gate::default());
        through(&gate).await.limited(Duration::ZERO, "429");
        let busy = through(&gate).await;
        let impatient = timeout(Duration::from_secs(1), through(&gate)).await;
        assert!(impatient.is_err());
        let (waiting, ()) = tokio::join!(through(&gate), async {
            sleep(Duration::from_secs(1)).await;
            drop(busy);
        });
        drop(waiting);
        let state = gate.state();
        assert_eq!((state.in_flight, state.waiting.len()), (0, 0));
    }
}
