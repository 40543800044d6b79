//! The UUID under which Claude Code knows a message of ours. What it has under one it does not run
//! again, in this process or a later one.

use asyncagents_core::{digest::digest, id::PostId};
use uuid::Builder;

/// How often a message can be sent anew in one process. One that was taken back has used up its
/// UUID there.
pub(super) const MOST_ATTEMPTS: u32 = 4;

/// The UUID of a post: the same in every process and every version, for it is in files.
pub(super) fn of_post(post: &PostId, attempt: u32) -> String {
    let attempt = attempt.to_string();
    let half = |which: &str| digest(&["claude message", which, post.as_str(), &attempt]);
    let bits = (u128::from(half("a")) << 64) | u128::from(half("b"));
    let uuid = Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid();
    uuid.to_string()
}

/// All UUIDs that a post can have.
pub(super) fn all_of_post(post: &PostId) -> impl Iterator<Item = String> {
    (0..MOST_ATTEMPTS).map(|attempt| of_post(post, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uuids_in_files_stay_what_they_are() {
        let post = PostId::from("task_1.prompt.1");
        let first = of_post(&post, 0);
        assert_eq!(first, "1f86c590-fc1a-81cb-82dd-86db797201a0");
        let all: Vec<String> = all_of_post(&post).collect();
        assert_eq!(all.len(), 4);
        assert!(!all[1..].contains(&all[0]));
        assert_ne!(of_post(&"task_1.prompt.2".into(), 0), all[0]);
    }
}
