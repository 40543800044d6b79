//! A step: tool results, the newest whole and older ones ever shorter; parameters too.

use aho_corasick::packed::Searcher;

use super::{
    Limits,
    cut_text::Kept,
    inherited::{Fate, Inherited, ShownCall, Tier},
    pipeline::Step,
};
use crate::transcript::Outcome;

/// Decides by its tier how much of each call stays.
pub(super) struct CutResults<'l> {
    limits: &'l Limits,
    failure: FailureWords<'l>,
}

impl Step for CutResults<'_> {
    fn apply(&mut self, message: &mut Inherited) {
        for call in message.calls_mut() {
            self.cut_params(call);
            self.cut_result(call);
        }
    }
}

impl<'l> CutResults<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            failure: FailureWords::new(&limits.head_tail_words),
        }
    }

    fn cut_params(&self, call: &mut ShownCall) {
        let keep = match call.tier {
            Tier::Whole => self.limits.whole_param_chars,
            Tier::Middle => self.limits.middle_param_chars,
            Tier::Old => self.limits.old_param_chars,
        };
        if call.params.chars > keep {
            call.params = call.params.first(keep);
            call.params_cut = true;
        }
    }

    fn cut_result(&self, call: &mut ShownCall) {
        let keep = match call.tier {
            Tier::Whole => return,
            Tier::Middle => self.limits.middle_result_chars,
            Tier::Old => self.limits.old_result_chars,
        };
        let has_text = matches!(
            call.call.outcome,
            Outcome::Completed(_) | Outcome::Failed(_)
        );
        let (tool, text) = (call.call.name.as_str(), call.result.head);
        if !has_text || text.chars <= keep || self.limits.is_uncut(tool) {
            return;
        }
        let head_percent = if self.end_matters(tool, text.text()) {
            self.limits.head_percent
        } else {
            100
        };
        call.result = Kept::cut(text, keep, head_percent);
        call.fate = Fate::Cut;
    }

    /// Commands and failures say what happened in their last lines.
    fn end_matters(&self, tool: &str, text: &str) -> bool {
        let names = &self.limits.head_tail_tools;
        names.iter().any(|name| tool.contains(name.as_str())) || self.failure.is_in(text)
    }
}

/// Finds any of a few words, all at once.
struct FailureWords<'l> {
    words: &'l [String],
    /// Absent for no words, or for more than it can take at once.
    searcher: Option<Searcher>,
}

impl<'l> FailureWords<'l> {
    fn new(words: &'l [String]) -> Self {
        Self {
            words,
            searcher: Searcher::new(words),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        match &self.searcher {
            Some(searcher) => searcher.find(text).is_some(),
            None => self.words.iter().any(|word| text.contains(word.as_str())),
        }
    }
}
