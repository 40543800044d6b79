//! Numbers and lists as people write them.

/// `12500` as `12,500`.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 message`, `2,000 messages`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", grouped(number))
}

/// `a, b and c`.
pub(super) fn listed<S: AsRef<str>>(items: impl IntoIterator<Item = S>, last: &str) -> String {
    let items: Vec<S> = items.into_iter().collect();
    let mut text = String::new();
    for (at, item) in items.iter().enumerate() {
        if at > 0 && at + 1 == items.len() {
            text.push_str(&format!(" {last} "));
        } else if at > 0 {
            text.push_str(", ");
        }
        text.push_str(item.as_ref());
    }
    text
}
