//! Which hosts an agent has tried to reach.

use std::{collections::VecDeque, sync::Mutex};

use asyncagents_core::{lock::lock, make_visible::make_visible, shorten::shorten};

const MOST: usize = 8;
const LONGEST: usize = 100;

/// The newest hosts that were refused, each once.
#[derive(Default)]
pub(super) struct Refused(Mutex<VecDeque<String>>);

impl Refused {
    pub(super) fn add(&self, host: &str) {
        let host = make_visible(&shorten(host, LONGEST, "…"));
        tracing::warn!("agent tried to reach {host}");
        let mut hosts = lock(&self.0);
        hosts.retain(|known| *known != host);
        hosts.push_back(host);
        if hosts.len() > MOST {
            hosts.pop_front();
        }
    }

    pub(super) fn newest(&self) -> Vec<String> {
        lock(&self.0).iter().cloned().collect()
    }
}
