use super::*;

#[test]
fn quotas_are_of_owners_and_models() {
    let text = "[[quota]]\norg = \"acme\"\nmodel = \"H200\"\nguaranteed = 64\nlend_limit = 16\nmax = 96\nweight = \"1.5\"\n\
                [[quota]]\norg = \"acme\"\nproject = \"vision\"\nmodel = \"H200\"\nguaranteed = 32\nborrow_limit = 0\n\
                [[quota]]\norg = \"nova\"\ncluster = \"lab\"\nweight = 2\n";
    let quotas = Quotas::parse(text).unwrap().quotas;
    let holder =
        |project: Option<&str>, org: &str| Holder { org: org.into(), project: project.map(Into::into), user: None };
    let cards = |guaranteed, borrow_limit, lend_limit, most| {
        Some(CardQuota { model: "H200".into(), guaranteed, borrow_limit, lend_limit, most, month: None })
    };
    assert_eq!(
        quotas,
        [
            Quota {
                holder: holder(None, "acme"),
                cluster: None,
                cards: cards(64, None, Some(16), Some(96)),
                weight_milli: Some(1_500)
            },
            Quota {
                holder: holder(Some("vision"), "acme"),
                cluster: None,
                cards: cards(32, Some(0), None, None),
                weight_milli: None
            },
            Quota { holder: holder(None, "nova"), cluster: Some("lab".into()), cards: None, weight_milli: Some(2_000) },
        ]
    );
    assert_eq!(Quotas::parse("").unwrap(), Quotas::default());
}

#[test]
fn every_fault_is_told_with_its_line() {
    let text = "[[quota]]\nproject = \"vision\"\nmodel = \"H200\"\nguaranteed = 1\n\
                [[quota]]\norg = \"a\"\nuser = \"ann\"\nmodel = \"H200\"\nguaranteed = 1\n\
                [[quota]]\norg = \"a\"\nmodel = \"H200\"\nguaranteed = 4\nlend_limit = 5\nmax = 3\n\
                [[quota]]\norg = \"a\"\nguaranteed = -1\n\
                [[quota]]\norg = \"b\"\n\
                [[quota]]\norg = \"c\"\nmodel = \"L4\"\nguaranteed = \"many\"\ncards = 3\n";
    let told = Quotas::parse(text).unwrap_err().to_string();
    for words in [
        "line 1: quota[1].org: is missing",
        "line 5: quota[2].project: is missing",
        "line 14: quota[3].lend_limit: is more than the 4 that are guaranteed",
        "line 15: quota[3].max: is less than the 4 that are guaranteed",
        "line 16: quota[4].model: is missing: guaranteed is of cards of a model",
        "line 19: quota[5]: says nothing",
        "line 24: quota[6].guaranteed:",
        "line 25: quota[6].cards:",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    let twice = "[[quota]]\norg = \"a\"\nmodel = \"L4\"\nguaranteed = 1\n".repeat(2);
    assert!(Quotas::parse(&twice).unwrap_err().to_string().contains("same owner and model"));
}

/// 12.5 card-hours of 18,018,000 parts × 3,600,000 ms each, by hand.
#[test]
fn a_bucket_of_a_month_is_of_a_model_and_above_zero() {
    let of = |lines: &str| Quotas::parse(&format!("[[quota]]\norg = \"a\"\n{lines}"));
    let quotas = of("model = \"L4\"\nmonth_card_hours = \"12.5\"\n").unwrap();
    let cards = quotas.quotas[0].cards.clone().unwrap();
    assert_eq!(cards.month, Some(CardTime::from_part_ms(810_810_000_000_000)));
    assert_eq!(cards.guaranteed, 0);
    assert!(quotas.have_months());
    for (lines, words) in [
        ("model = \"L4\"\nmonth_card_hours = 0\n", "line 4: quota[1].month_card_hours: has to be above zero"),
        ("model = \"L4\"\nmonth_card_hours = \"much\"\n", "line 4: quota[1].month_card_hours:"),
        ("month_card_hours = 5\n", "quota[1].model: is missing: month_card_hours is of cards of a model"),
    ] {
        let told = of(lines).unwrap_err().to_string();
        assert!(told.contains(words), "{words}\n{told}");
    }
}
