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

/// Half a cent, a price beside an amount, a month that is none: each is told with its line and field, and the rest is booked.
#[test]
fn costs_that_cannot_be_booked_go_to_quarantine() {
    let site = Site::new();
    let rows = "2026-03,rent,,1.005,USD\n2026-03,staff,2,1,USD\n2026-13,power,,1,USD\n2026-03,water,,7,USD\n";
    let file = site.file("costs.csv", format!("month,name,unit_price,amount,currency\n{rows}"));
    let answer = site.run(&format!("import costs {file}"));
    assert_eq!(answer.code, Some(4), "{answer:?}");
    let fields = site.sql("select line, field from quarantine").by("line", "field");
    let fields: Vec<(&str, &str)> = fields.iter().map(|(line, field)| (&**line, &**field)).collect();
    assert_eq!(fields, [("2", "amount"), ("3", "amount"), ("4", "month")]);
    assert_eq!(site.sql("select name from costs").only("name"), "water");
}

#[test]
fn doctor_tells_the_faults_of_a_billing_policy() {
    let site = Site::new();
    site.ok("init");
    assert!(site.run("doctor").out.contains("held cards at the prices of the book"));
    std::fs::write(site.ledger().join("billing.toml"), "mode = \"flat\"\n[refunds]\nnode_fail = \"2\"\n").unwrap();
    let told = site.run("doctor").out;
    assert!(told.contains("line 1: mode") && told.contains("line 3: refunds.node_fail"), "{told}");
    std::fs::write(site.ledger().join("billing.toml"), "mode = \"absorb\"\n").unwrap();
    assert!(site.run("doctor").out.contains("mode absorb, version "));
}
