//! When the screen is drawn again.

use std::{future::pending, mem, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::FRAME;

/// How often the live lines are drawn while nothing happens: their clocks go on.
const CLOCK: Duration = Duration::from_secs(1);

/// The same, when nothing has happened for a while.
const SLOW_CLOCK: Duration = Duration::from_secs(2);
const A_WHILE: Duration = Duration::from_secs(10);

/// When the screen is drawn again: soon after something has happened, and from time to time where
/// there are live lines.
pub(crate) struct Frames {
    /// There are live lines.
    live: bool,
    last: Option<Instant>,
    changed: bool,
    /// When something that had happened was drawn.
    drawn: Option<Instant>,
}

impl Frames {
    pub(super) fn new(live: bool) -> Self {
        Self {
            live,
            last: None,
            changed: true,
            drawn: None,
        }
    }

    /// Something has happened.
    pub(crate) fn changed(&mut self) {
        self.changed = true;
    }

    /// Returns when it is time to draw. Nothing is lost if this is dropped.
    pub(crate) async fn next(&mut self) {
        let pause = match (self.changed, self.live) {
            (true, _) => FRAME,
            (false, true) if self.drawn.is_some_and(|drawn| drawn.elapsed() > A_WHILE) => {
                SLOW_CLOCK
            }
            (false, true) => CLOCK,
            (false, false) => pending().await,
        };
        if let Some(last) = self.last {
            sleep_until(last + pause).await;
        }
        let now = Instant::now();
        self.last = Some(now);
        if mem::take(&mut self.changed) {
            self.drawn = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

    use super::Frames;

    /// How often the screen is drawn in a minute in which nothing happens.
    async fn drawn_in_a_minute(mut frames: Frames) -> usize {
        let end = Instant::now() + Duration::from_secs(60);
        let mut drawn = 0;
        while tokio::time::timeout_at(end, frames.next()).await.is_ok() {
            drawn += 1;
        }
        drawn
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_goes_on_where_it_can_be_seen_and_nowhere_else() {
        let drawn = drawn_in_a_minute(Frames::new(true)).await;
        assert!((30..=40).contains(&drawn), "{drawn} times");
        assert_eq!(drawn_in_a_minute(Frames::new(false)).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_is_drawn_a_quarter_of_a_second_later_at_most() {
        let mut frames = Frames::new(true);
        frames.next().await;
        let waited = timeout(Duration::from_millis(900), frames.next()).await;
        assert!(waited.is_err(), "nothing has happened");
        frames.changed();
        let happened = Instant::now();
        frames.next().await;
        assert!(happened.elapsed() <= Duration::from_millis(250));
    }
}
