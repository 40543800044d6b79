//! What several reports of a host say together.

use std::collections::{HashSet, VecDeque};

use asyncagents_core::{port::SessionEvent, progress::Observation};

use crate::hosts::RunReport;

/// How many reports are remembered, to recognise one that comes again.
const REMEMBERED: usize = 256;

/// The names of the newest reports.
#[derive(Default)]
pub(super) struct Seen {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Seen {
    /// False if it was seen before.
    fn is_new(&mut self, key: String) -> bool {
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

/// What several reports say together.
#[derive(Default)]
pub(super) struct News {
    pub(super) observed: Vec<Observation>,
    pub(super) alive: bool,
    pub(super) ask: bool,
    pub(super) deleted: bool,
}

impl News {
    pub(super) fn take(&mut self, report: RunReport, seen: &mut Seen) {
        match report {
            RunReport::Event(SessionEvent::Observed { key, what }) => {
                // What is heard again, such as a tool whose output grows, is a sign of life.
                if seen.is_new(key) {
                    self.observed.push(what);
                } else {
                    self.alive = true;
                }
            }
            RunReport::Event(SessionEvent::Alive) => self.alive = true,
            RunReport::Event(SessionEvent::Idle) | RunReport::Missed => self.ask = true,
            RunReport::Event(SessionEvent::Deleted) => self.deleted = true,
        }
    }
}
