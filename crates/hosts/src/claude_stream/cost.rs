//! What a turn has cost. Claude Code names a total, which goes on where an earlier process has ended
//! in order, and begins at zero where it was killed; newer ones also say what is new in it.

use asyncagents_core::budget::Cost;

/// What is known of the total.
#[derive(Debug)]
pub(super) struct Costs {
    total: Option<Cost>,
}

impl Costs {
    /// A session of a new process. With `from_zero`, nothing was paid for it before.
    pub(super) fn new(from_zero: bool) -> Self {
        Self {
            total: from_zero.then(Cost::default),
        }
    }

    /// What was spent since the last turn, by the total and, if that is said, by what is new.
    pub(super) fn spent(&mut self, total: Option<f64>, new: Option<f64>) -> Cost {
        let before = self.total;
        let total = total.map(cost);
        self.total = total.or(before);
        let difference = || Some(total? - before?);
        new.map(cost).or_else(difference).unwrap_or_default()
    }
}

fn cost(dollars: f64) -> Cost {
    Cost::from_dollars(dollars).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_process_has_cost_does_not_count() {
        let mut resumed = Costs::new(false);
        let spent = resumed.spent(Some(0.106_388), Some(0.053_276));
        assert_eq!(spent, Cost(53_276));
        // Where it does not say what is new, the first turn cannot be told from what was before.
        let mut resumed = Costs::new(false);
        assert_eq!(resumed.spent(Some(5.0), None), Cost(0));
        assert_eq!(resumed.spent(Some(5.5), None), Cost(500_000));
        let mut new = Costs::new(true);
        assert_eq!(new.spent(Some(0.5), None), Cost(500_000));
        assert_eq!(new.spent(Some(f64::NAN), Some(-1.0)), Cost(0));
        assert_eq!(new.spent(Some(1e308), Some(1e308)), Cost(0));
        assert_eq!(new.spent(None, None), Cost(0));
    }
}
