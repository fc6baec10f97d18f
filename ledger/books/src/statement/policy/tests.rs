use super::*;

const FULL: &str = r#"
mode = "absorb"
fiscal_year_starts = "04"

[statement]
issuer = "GPU Platform"
prefix = "GPU"
tax_included = false
tax_note = "Net of VAT."
payment_terms = "30 days"
minimum_coverage = "0.9"

[statement.accounts]
acme = "Acme Ltd"

[capacity]
free = "shared"
share_by = "card_hours"
reserved = "owner"

[refunds]
node_fail = "1"
fatal_xid = 0.5
preempted = "0"
of = "lost"

[efficiency]
policy = "surcharge"
minimum_use_coverage = "0.8"
[[efficiency.tier]]
below = "0.2"
part = "0.1"

[[used_basis]]
queue = "serverless*"
"#;

fn policy(text: &str) -> BillingPolicy {
    BillingPolicy::parse(text).unwrap_or_else(|faults| panic!("{faults}"))
}

#[track_caller]
fn check_faults(text: &str, expected: &[&str]) {
    let faults = BillingPolicy::parse(text).expect_err("a faulty policy");
    let faults: Vec<String> = faults.0.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault:?} should begin with {expected:?}");
    }
}

#[test]
fn a_file_that_says_nothing_is_the_default() {
    assert_eq!(policy(""), BillingPolicy::default());
    assert_eq!(policy("# mode = \"absorb\"\n"), BillingPolicy::default());
    assert_eq!(&*BillingPolicy::default().number_prefix, "CH");
}

#[test]
fn what_the_file_says_is_what_holds() {
    let policy = policy(FULL);
    assert_eq!((policy.mode, policy.fiscal_year_starts), (BillingMode::Absorb, 4));
    assert_eq!((policy.issuer.as_deref(), &*policy.number_prefix), (Some("GPU Platform"), "GPU"));
    assert_eq!((policy.tax_included, policy.minimum_coverage), (Some(false), Decimal::new(9, 1)));
    let account = |org: &str| policy.account(Some(&org.into())).to_string();
    assert_eq!(
        (account("acme"), account("else"), policy.account(None)),
        ("Acme Ltd".into(), "else".into(), "platform".into())
    );
    let march = Month::parse("2026-03").unwrap();
    assert_eq!(&*policy.number(march, Some(&"acme".into())), "GPU-2026-03-acme");
    let CapacityPolicy { free, share_by, reserved } = policy.capacity;
    assert_eq!((free, share_by, reserved), (FreeCapacity::Shared, ShareBy::CardHours, ReservedCapacity::Owner));
    let parts = RefundCause::ALL.map(|cause| policy.refunds.part(cause));
    assert_eq!(parts, [Some(Decimal::ONE), Some(Decimal::new(5, 1)), None, None], "a part of nothing is none");
    assert_eq!(policy.refunds.of, RefundOf::Lost);
    assert_eq!(policy.efficiency.effect, EfficiencyEffect::Surcharge);
    assert!(policy.efficiency.tiers[0].is_for(Decimal::new(19, 2)));
    assert!(!policy.efficiency.tiers[0].is_for(Decimal::new(2, 1)));
    assert!(policy.used_basis[0].is_for(Some("serverless-a"), None));
    assert!(!policy.used_basis[0].is_for(Some("batch"), None));
    assert!(!policy.used_basis[0].is_for(None, None));
}

#[test]
fn every_fault_is_told_at_once_with_its_line_and_key() {
    let text = r#"mode = "flat"
fiscal_year_starts = "13"
colour = "red"
[statement]
issuer = ""
prefix = "a/b"
tax_included = "no"
minimum_coverage = "95"
[capacity]
free = "line"
share_by = "even"
reserved = "platform"
[refunds]
node_fail = "1.5"
node_failed = "1"
[efficiency]
policy = "discount"
[[efficiency.tier]]
at_least = "0.5"
[[efficiency.tier]]
part = "0.1"
[[efficiency.tier]]
at_least = "0.5"
below = "0.5"
part = "0.1"
[[used_basis]]
"#;
    check_faults(
        text,
        &[
            "line 1: mode: \"flat\" is none of rate, absorb",
            "line 2: fiscal_year_starts: 13 is more than 12",
            "line 3: colour: unknown key",
            "line 5: statement.issuer: is an empty text",
            "line 6: statement.prefix: numbers of statements name files",
            "line 7: statement.tax_included: has to be true or false, not string",
            "line 8: statement.minimum_coverage: 95 is more than 1",
            "line 11: capacity.share_by: says nothing unless free = \"shared\"",
            "line 12: capacity.reserved: \"platform\" is none of none, line, owner",
            "line 14: refunds.node_fail: 1.5 is more than 1",
            "line 15: refunds.node_failed: unknown key",
            "line 18: efficiency.tier[1].part: is missing",
            "line 20: efficiency.tier[2]: needs at_least or below",
            "line 22: efficiency.tier[3]: no efficiency is at least 0.5 and below 0.5",
            "line 26: used_basis[1]: needs a queue or a class",
        ],
    );
    check_faults("[efficiency]\npolicy = \"discount\"\n", &["line 2: efficiency.policy: discount needs an"]);
    check_faults("fiscal_year_starts = 0", &["line 1: fiscal_year_starts: has to be a month"]);
}

#[test]
fn the_canonical_text_is_read_back_as_the_same_policy() {
    let seen = "[statement]\nminimum_seen = \"0.5\"\n[statement.accounts]\nacme = \"Acme\"\n";
    assert_eq!(policy(seen).minimum_seen(), Decimal::new(5, 1));
    for text in [FULL, "", "[capacity]\nfree = \"line\"\n", seen] {
        let policy = policy(text);
        assert_eq!(BillingPolicy::parse(&policy.canonical()).unwrap(), policy);
    }
}

#[test]
fn the_version_is_of_what_the_policy_says_and_not_of_how() {
    let same = FULL.replace("\"0.9\"", "\"0.900\"").replace("0.5\n", "\"0.5\"\n") + "\n# end\n";
    assert_eq!(policy(&same).version(), policy(FULL).version());
    for (before, after) in
        [("absorb", "rate"), ("\"04\"", "\"05\""), ("Acme Ltd", "Acme"), ("lost", "held"), ("\"0.8\"", "\"0.7\"")]
    {
        assert_ne!(policy(&FULL.replace(before, after)).version(), policy(FULL).version(), "{before}");
    }
}

#[test]
fn a_policy_has_the_version_it_had_before() {
    let canonical = "mode = \"rate\"\nfiscal_year_starts = \"01\"\n[statement]\nprefix = \"CH\"\nminimum_coverage = \"0.95\"\n\
        [capacity]\nfree = \"none\"\nshare_by = \"cost\"\nreserved = \"none\"\n[refunds]\nof = \"held\"\n\
        [efficiency]\npolicy = \"explain\"\nminimum_use_coverage = \"0.5\"\n";
    assert_eq!(BillingPolicy::default().canonical(), canonical);
    let hash = blake3::hash(canonical.as_bytes()).to_hex();
    assert_eq!(&*BillingPolicy::default().version(), &hash[..12]);
    let said = policy("[statement]\nminimum_seen = \"0.950\"\n");
    assert_eq!(said.version(), BillingPolicy::default().version(), "the default, said, is the default");
}

/// April 2026 begins 2026/27 where years start in April; March is the last month of 2025/26.
#[test]
fn a_fiscal_year_is_named_by_the_years_it_is_in() {
    let year = |text: &str, starts| {
        let policy = BillingPolicy { fiscal_year_starts: starts, ..BillingPolicy::default() };
        policy.fiscal_year(Month::parse(text).unwrap())
    };
    assert_eq!(year("2026-03", 1), "2026");
    assert_eq!(year("2026-03", 4), "2025/26");
    assert_eq!(year("2026-04", 4), "2026/27");
    assert_eq!(year("1999-12", 10), "1999/00");
}

#[test]
fn an_organisation_that_is_called_platform_has_another_number_than_the_platforms_own() {
    let policy = BillingPolicy::default();
    let month = cardhour_domain::Month::parse("2026-03").unwrap();
    let named: cardhour_domain::Name = crate::statement::PLATFORM.into();
    assert_ne!(policy.number(month, None), policy.number(month, Some(&named)));
}
