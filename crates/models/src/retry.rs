//! How long to wait before the next attempt.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// A random wait that may be twice as long after each failure. `luck` is between 0 and 1.
/// The whole range is used, so that requests that failed together are not sent together again.
pub(crate) fn backoff(failures: u32, luck: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST).mul_f64(luck.clamp(0.0, 1.0))
}

/// The wait that the server's headers ask for.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|text| whole(text, 1000.0)) {
        return Some(wait);
    }
    let retry_after = text("retry-after")?;
    if let Some(wait) = whole(retry_after, 1.0) {
        return Some(wait);
    }
    let then = httpdate::parse_http_date(retry_after).ok()?;
    // The server's clock counts, not ours. It is cut to a second, so the wait is never short.
    let server = text("date").and_then(|date| httpdate::parse_http_date(date).ok());
    Some(
        then.duration_since(server.unwrap_or(now))
            .unwrap_or_default(),
    )
}

/// The wait that the words of an error ask for: "try again in 1.2s".
pub(crate) fn in_words(text: &str) -> Option<Duration> {
    const WORDS: [&str; 3] = ["try again in ", "retry in ", "retry after "];
    let text = text.to_lowercase();
    let after = |words: &&str| Some(text.split_once(*words)?.1);
    WORDS.iter().find_map(after).and_then(in_units)
}

/// A time at the beginning of a text: `37s`, `1m12.5s`, `800ms`, `26 seconds`.
pub(crate) fn in_units(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start();
    let mut total = None;
    loop {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let after = after.trim_start();
        let letters = after.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let seconds = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            _ => return total,
        };
        let Some(part) = number.parse::<f64>().ok() else {
            return total;
        };
        let part = Duration::try_from_secs_f64(part * seconds).ok()?;
        total = Some(total.unwrap_or(Duration::ZERO).saturating_add(part));
        rest = after;
    }
}

fn whole(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, 1.0, 500)]
    #[case(2, 1.0, 1_000)]
    #[case(2, 0.25, 250)]
    #[case(7, 1.0, 30_000)]
    #[case(4_000_000, 1.0, 30_000)]
    #[case(3, 0.0, 0)]
    fn waits_double_up_to_half_a_minute(#[case] failures: u32, #[case] luck: f64, #[case] ms: u64) {
        assert_eq!(backoff(failures, luck), Duration::from_millis(ms));
    }

    #[rstest]
    #[case("Please try again in 1.2s.", Some(1_200))]
    #[case("Please try again in 7m12.48s. Need more?", Some(432_480))]
    #[case("Please try again in 20ms. Visit", Some(20))]
    #[case("Please retry after 26 seconds.", Some(26_000))]
    #[case("Please retry in 37.5s", Some(37_500))]
    #[case("Try again in 6h0m0s", Some(21_600_000))]
    #[case("Try again in a while", None)]
    #[case("Try again in 5 s… or 10 s", Some(5_000))]
    #[case("Try again in 99999999999999999999999999 h", None)]
    #[case("Slow down.", None)]
    fn a_wait_in_words(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(in_words(text), ms.map(Duration::from_millis));
    }

    #[rstest]
    #[case(&[("retry-after", "7")], Some(7_000))]
    #[case(&[("retry-after", "1.5")], Some(1_500))]
    #[case(&[("retry-after", "7"), ("retry-after-ms", "120")], Some(120))]
    #[case(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")], Some(3_000))]
    #[case(&[("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT")], Some(0))]
    #[case(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), ("date", "Sun, 06 Nov 1994 08:49:00 GMT")], Some(40_000))]
    #[case(&[("retry-after", "-3")], None)]
    #[case(&[("retry-after", "soon")], None)]
    #[case(&[], None)]
    fn a_server_may_ask_for_a_wait(
        #[case] headers: &[(&'static str, &str)],
        #[case] ms: Option<u64>,
    ) {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).expect("a value"));
        }
        assert_eq!(retry_after(&map, now), ms.map(Duration::from_millis));
    }
}
