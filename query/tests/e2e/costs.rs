//! `import costs` and the billing policy, on the real binary.

use crate::site::Site;

/// 12.5 × 0.37 is 4.625, half to even 4.62. The second import corrects the rent and leaves the rest.
#[test]
fn costs_are_booked_once_and_a_later_row_replaces_the_same_item() {
    let site = Site::new();
    let header = "month,name,org,quantity,unit,unit_price,amount,currency\n";
    let first = site.file(
        "costs.csv",
        format!("{header}2026-03,rent,,,,,1200.50,USD\n2026-03,storage,acme,12.5,TiB-month,0.37,,USD\n"),
    );
    site.import(&format!("costs {first}"));
    site.import(&format!("costs {first}"));
    let second = site.file("later.csv", format!("{header}2026-03,rent,,,,,1300,USD\n"));
    site.import(&format!("costs {second}"));
    let costs = site.sql("select name, amount, unit from costs order by name").by("name", "amount");
    let micros = |name: &str| crate::site::micros(&costs[name]);
    assert_eq!((costs.len(), micros("rent"), micros("storage")), (2, 1_300_000_000, 4_620_000));
}
