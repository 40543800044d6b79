//! Limits as a user sets them.

use asyncagents_core::fork::{Limits, Preset};
use rstest::rstest;

fn set(key: &str, value: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    let set = limits.set(key, value);
    set.map(|()| limits).map_err(|error| error.to_string())
}

#[rstest]
#[case(
    "whole_results",
    "-1",
    "whole_results: `-1` is refused; allowed: 0 to 1,000,000"
)]
#[case(
    "middle_result_chars",
    "lots",
    "middle_result_chars: `lots` is refused; allowed: 0 to 1,000,000,000"
)]
#[case(
    "head_percent",
    "101",
    "head_percent: `101` is refused; allowed: 0 to 100"
)]
#[case(
    "max_chars",
    "0",
    "max_chars: `0` is refused; allowed: 1,000 to 20,000,000"
)]
#[case(
    "max_tokens",
    "1e5",
    "max_tokens: `1e5` is refused; allowed: 1,000 to 20,000,000"
)]
#[case(
    "max_tokens",
    "99999999999999999999999",
    "max_tokens: `99999999999999999999999` is refused; allowed: 1,000 to 20,000,000"
)]
#[case(
    "call_ids",
    "yes",
    "call_ids: `yes` is refused; allowed: true or false"
)]
#[case(
    "when_over",
    "explode",
    "when_over: `explode` is refused; allowed: remove or refuse"
)]
#[case(
    "head_tail_words",
    "a,,b",
    "head_tail_words: `a,,b` is refused; allowed: up to 64 words, separated by commas"
)]
fn nonsense_is_refused_with_its_key_and_what_is_allowed(
    #[case] key: &str,
    #[case] value: &str,
    #[case] sentence: &str,
) {
    assert_eq!(set(key, value).expect_err("refused"), sentence);
}

#[test]
fn an_unknown_key_names_the_known_ones() {
    let error = set("max_char", "5").expect_err("refused");
    assert!(
        error.starts_with(
            "`max_char` is not a fork limit; there are whole_results, middle_results, "
        )
    );
    assert!(error.ends_with(" and head_tail_words"));
}

#[test]
fn every_limit_can_be_set_to_what_it_is() {
    for (name, preset) in Preset::ALL {
        let mut limits = preset.limits();
        for (key, value, allowed) in preset.limits().describe() {
            limits
                .set(key, value.as_str())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!allowed.is_empty());
        }
        assert_eq!(limits, preset.limits(), "{name}");
    }
}

#[test]
fn limits_are_written_and_read_back() {
    for (name, preset) in Preset::ALL {
        let json = serde_json::to_string(&preset.limits()).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Limits>(&json).expect(name),
            preset.limits()
        );
        let toml = toml::to_string(&preset.limits()).expect("TOML");
        assert_eq!(
            toml::from_str::<Limits>(&toml).expect(name),
            preset.limits()
        );
    }
}

#[test]
fn configuration_changes_a_preset() {
    let limits: Limits = toml::from_str(
        "preset = 'flat'\nmax_tokens = 20_000\nuncut_tools = ['question', 'interview']\ncall_ids = false",
    )
    .expect("good configuration");
    let mut expected = Preset::Flat.limits();
    for (key, value) in [
        ("max_tokens", "20000"),
        ("uncut_tools", "question, interview"),
        ("call_ids", "false"),
    ] {
        expected.set(key, value).expect("allowed");
    }
    assert_eq!(limits, expected);
}

#[rstest]
#[case(
    "max_chars = -5",
    "max_chars: `-5` is refused; allowed: 1,000 to 20,000,000"
)]
#[case(
    "max_chars = 1.5",
    "max_chars: `1.5` is refused; allowed: 1,000 to 20,000,000"
)]
#[case(
    "max_chars = [1, 2]",
    "max_chars: `1,2` is refused; allowed: 1,000 to 20,000,000"
)]
#[case(
    "preset = 'gradual'",
    "preset: `gradual` is refused; allowed: graduated, flat or exact"
)]
#[case("speed = 5", "`speed` is not a fork limit")]
fn bad_configuration_is_refused_with_its_key(#[case] toml: &str, #[case] sentence: &str) {
    let error = toml::from_str::<Limits>(toml)
        .expect_err("refused")
        .to_string();
    assert!(error.contains(sentence), "{error}");
}
