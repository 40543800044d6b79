//! How much of a prompt was seen before.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::request::Request;

/// So many prompts are remembered for each model.
const REMEMBERED: usize = 64;

/// The prompts of late, as a provider's prompt cache knows them.
#[derive(Default)]
pub(crate) struct PrefixCache(Mutex<HashMap<String, Recent>>);

/// The prompts of one model, in the order of the alphabet. The one that shares most with a new
/// prompt would be its neighbour, so only a few have to be compared.
#[derive(Default)]
struct Recent {
    arrived: u64,
    sorted: Vec<Prompt>,
}

struct Prompt {
    request: Arc<Request>,
    /// Higher for newer ones.
    number: u64,
}

impl PrefixCache {
    /// How many bytes this prompt shares with the beginning of one before; remembers it.
    pub(crate) fn seen(&self, request: &Arc<Request>) -> usize {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = models.entry(request.model.clone()).or_default();
        recent.seen(request)
    }
}

impl Recent {
    fn seen(&mut self, request: &Arc<Request>) -> usize {
        let new = request.prompt();
        let place = self
            .sorted
            .partition_point(|other| other.request.prompt() < new);
        let neighbours = self.sorted.iter().skip(place.saturating_sub(1)).take(2);
        let shared = neighbours.map(|other| common(new, other.request.prompt()));
        let longest = shared.max().unwrap_or(0);
        self.remember(place, request);
        longest
    }

    fn remember(&mut self, place: usize, request: &Arc<Request>) {
        self.arrived += 1;
        let prompt = Prompt {
            request: Arc::clone(request),
            number: self.arrived,
        };
        self.sorted.insert(place, prompt);
        if self.sorted.len() > REMEMBERED {
            let oldest = self.arrived - REMEMBERED as u64;
            self.sorted.retain(|prompt| prompt.number > oldest);
        }
    }
}

/// The length of the common beginning, in bytes, up to the end of a character.
fn common(one: &str, other: &str) -> usize {
    // Blocks first: comparing them is many times faster than byte by byte.
    const BLOCK: usize = 256;
    let (a, b) = (one.as_bytes(), other.as_bytes());
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK));
    let same = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a.iter().skip(same).zip(b.iter().skip(same));
    let length = same + rest.take_while(|(a, b)| a == b).count();
    one.floor_char_boundary(length)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::protocol::Wire;

    fn request(model: &str, text: &str) -> Arc<Request> {
        let body =
            serde_json::json!({"model": model, "messages": [{"role": "user", "content": text}]});
        Arc::new(Request::read(Wire::Chat, &body.to_string()).expect("a request"))
    }

    #[rstest]
    #[case::nothing("abc", "xyz", 0)]
    #[case::all("abc", "abc", 3)]
    #[case::the_shorter("abc", "abcdef", 3)]
    #[case::not_half_a_letter("aä", "aö", 1)]
    fn two_texts_share_their_beginning(
        #[case] one: &str,
        #[case] other: &str,
        #[case] shared: usize,
    ) {
        assert_eq!(common(one, other), shared);
        let long = "é".repeat(1_000);
        let same = common(&format!("{long}{one}"), &format!("{long}{other}"));
        assert_eq!(same, long.len() + shared);
    }

    #[test]
    fn the_longest_beginning_of_all_recent_prompts_counts_and_old_ones_are_forgotten() {
        let cache = PrefixCache::default();
        assert_eq!(cache.seen(&request("m", "one two three")), 0);
        assert_eq!(cache.seen(&request("m", "one too")), 5);
        assert_eq!(cache.seen(&request("m", "zebra")), 0);
        assert_eq!(cache.seen(&request("m", "one two four")), 8);
        assert_eq!(cache.seen(&request("other", "one two three")), 0);
        for _ in 0..REMEMBERED {
            cache.seen(&request("m", "zebra"));
        }
        assert_eq!(cache.seen(&request("m", "one two three")), 0);
    }
}
