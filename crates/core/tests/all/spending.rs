//! What was spent, as far as prices are known.

use asyncagents_core::budget::{Cost, Price, Spent};
use rstest::rstest;

#[rstest]
#[case::nothing_used(0, 0, "$0.00", Some(0.0))]
#[case::known(1_500_000, 0, "$1.50", Some(1.5))]
#[case::free(0, 0, "$0.00", Some(0.0))]
#[case::unknown(0, 900, "cost unknown", None)]
#[case::in_part(20_000, 900, "at least $0.02", Some(0.02))]
fn a_price_that_nobody_knows_is_not_nothing(
    #[case] cost: u64,
    #[case] unpriced: u64,
    #[case] shown: &str,
    #[case] dollars: Option<f64>,
) {
    let price = Price::new(Cost(cost), unpriced);
    assert_eq!(
        (price.to_string().as_str(), price.dollars()),
        (shown, dollars)
    );
}

#[test]
fn tokens_without_a_price_are_summed_like_the_others() {
    let local = Spent {
        tokens: 100,
        unpriced: 100,
        ..Spent::default()
    };
    let paid = Spent {
        tokens: 10,
        cost: Cost(5),
        ..Spent::default()
    };
    let both = local.plus(paid);
    assert_eq!(both.price(), Price::AtLeast(Cost(5)));
    assert_eq!(both.beyond(local).price(), Price::Known(Cost(5)));
}
