//! A script while it is played.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{
    fill::Captures,
    reply::Reply,
    request::Request,
    script::{Rule, Script},
};

/// A script, and how often each rule may still be used.
pub(crate) struct ActiveRules {
    rules: Vec<ActiveRule>,
}

struct ActiveRule {
    rule: Rule,
    left: Option<AtomicU32>,
}

impl ActiveRules {
    pub(crate) fn new(script: Script) -> Self {
        let active = |rule: Rule| ActiveRule {
            left: rule.when.times.map(AtomicU32::new),
            rule,
        };
        Self {
            rules: script.rules.into_iter().map(active).collect(),
        }
    }

    /// The first rule that fits and has uses left; uses it once.
    pub(crate) fn choose(&self, request: &Request) -> Option<(&Reply, Captures)> {
        self.rules.iter().find_map(|active| {
            let captures = active.rule.when.fits(request)?;
            active.use_once().then_some((&active.rule.reply, captures))
        })
    }
}

impl ActiveRule {
    fn use_once(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.left.as_ref().is_none_or(|left| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                .is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::Wire, when::When};

    #[test]
    fn the_first_rule_with_uses_left_answers() {
        let script = Script::new()
            .rule(When::turn(5), Reply::text("never"))
            .rule(When::always().times(2), Reply::text("twice"))
            .rule(When::always().times(1), Reply::text("once"));
        let active_rules = ActiveRules::new(script);
        let body = r#"{"model": "m", "input": "hi"}"#;
        let request = Request::read(Wire::Responses, body).expect("a request");
        let answers: Vec<Option<String>> = (0..4)
            .map(|_| active_rules.choose(&request)?.0.content.text.clone())
            .collect();
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(answers, [said("twice"), said("twice"), said("once"), None]);
    }
}
