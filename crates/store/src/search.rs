//! What tasks are searched for: an index of every three characters in a row (`task_words`). It finds
//! those that may have a text in them; whether they have is for the list's own condition.

/// How many trigrams of a text are looked up: a long text is found by its beginning.
const MOST: usize = 32;

/// What is in the index for a task.
pub(crate) fn words(description: &str, agent: &str, id: &str) -> String {
    lowercase(&[description, agent, id].join("\n"))
}

/// A text in lower case, each letter by itself: how a sigma is written at the end of a word is not
/// known of a part of one.
pub(crate) fn lowercase(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// What finds a text in the index; nothing if it is too short for that.
pub(crate) fn query(text: &str) -> Option<String> {
    let characters: Vec<char> = lowercase(text).chars().collect();
    if characters.contains(&'\0') {
        return None;
    }
    let each = characters.windows(3).take(MOST).map(|three| {
        let three: String = three.iter().collect();
        format!("\"{}\"", three.replace('"', "\"\""))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join(" AND "))
}

#[cfg(test)]
mod tests {
    use super::query;

    #[test]
    fn a_text_is_found_by_every_three_characters() {
        assert_eq!(query("Är").as_deref(), None);
        assert_eq!(
            query("ÄRGER").as_deref(),
            Some(r#""ärg" AND "rge" AND "ger""#)
        );
        assert_eq!(query("ΔΟΣ").as_deref(), Some(r#""δοσ""#));
        assert_eq!(query(r#"a"b"#).as_deref(), Some(r#""a""b""#));
        assert_eq!(query("nul\0"), None);
        let long = query(&"x".repeat(10_000)).expect("a query");
        assert_eq!(long.matches("AND").count(), 31);
    }
}
