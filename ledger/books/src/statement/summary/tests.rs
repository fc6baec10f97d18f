use super::*;
use crate::statement::{BillingPolicy, Coverage, EntryKey, Issue, statements};
use cardhour_domain::Zone;

/// Entries from a text, one a line: `month kind project user model window what hours billed list amount reason…`, `-` for absent.
pub(super) fn statement_of(text: &str) -> Statement {
    let currency = Currency::parse("CNY").unwrap();
    let march = Month::parse("2026-03").unwrap();
    let name = |word: &str| (word != "-").then(|| Name::from(word));
    let time = |word: &str| {
        let micros = Decimal::from_str_exact(word).unwrap() * Decimal::from(1_000_000);
        CardTime::from_part_ms(
            micros.mantissa() / 10i128.pow(micros.scale()) * CardTime::PART_MS_PER_CARD_HOUR / 1_000_000,
        )
    };
    let money = |word: &str| {
        let micros = (Decimal::from_str_exact(word).unwrap() * Decimal::from(1_000_000)).normalize();
        Money::from_micros(micros.mantissa(), currency)
    };
    let entries = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [month, kind, project, user, model, window, what, hours, billed, list, amount] = words[..11] else {
            panic!("{line:?}")
        };
        Entry {
            key: EntryKey {
                original_period: Month::parse(month).unwrap(),
                kind: EntryKind::from_name(kind).unwrap(),
                org: Some("lab".into()),
                project: name(project),
                user: name(user),
                model: name(model),
                price_line: None,
                window: name(window),
                what: name(what),
            },
            period: march,
            original_entry: None,
            price_version: None,
            quantity: (kind == "cost_item").then(|| (Decimal::from(2), "TiB-month".into())),
            card_time: time(hours),
            billed_time: time(billed),
            list_amount: (list != "-").then(|| money(list)),
            amount: money(amount),
            reason: (words.len() > 11).then(|| words[11..].join(" ").into()),
        }
    });
    let (policy, coverage) = (BillingPolicy::default(), BTreeMap::<_, Coverage>::new());
    let issue = Issue {
        period: march,
        zone: Zone::UTC,
        currency,
        policy: &policy,
        coverage: &coverage,
        lines: &BTreeMap::new(),
        closed: None,
    };
    statements(entries.collect(), &issue).remove(0)
}

/// A month of two projects. By hand: ann 10 h at 18.50 = 185.00; bob 8 h of the night at 18.50 × 0.6 = 88.80 of 148.00; cy 36 h at 6.00 = 216.00, of
/// which 35 h are billed: 210.00. Refunded: bob's 2 h of a failed node, 22.20. Storage 12.00 twice. Of February: ann 1 h more, 18.50.
const MONTH: &str = "
    2026-03 charge    vision ann H200 -         -         10 10 185.00 185.00
    2026-03 charge    speech bob H200 off-peak  -         8  8  148.00 88.80
    2026-03 charge    vision cy  L40S -         -         36 35 210.00 210.00
    2026-03 refund    speech bob H200 off-peak  node_fail -2 -2 -      -22.20
    2026-03 cost_item speech -   -    -         storage   0  0  -      12.00
    2026-03 cost_item speech bob -    -         storage   0  0  -      12.00
    2026-02 charge    vision ann H200 -         -         1  1  18.50  18.50   was 0.00, is 18.50";

fn shown(figures: &Figures) -> String {
    let text = |money: Option<Money>| money.map_or("-".to_owned(), Money::to_minor_string);
    let kinds = EntryKind::ALL.map(|kind| text(figures.amount(kind))).join(" ");
    let hours = |time: CardTime| time.card_hours().normalize().to_string();
    format!(
        "{} entries, {} of {} h, list {}, {kinds} = {}",
        figures.entries,
        hours(figures.billed_time),
        hours(figures.card_time),
        text(figures.list_amount),
        figures.total.to_minor_string()
    )
}

#[track_caller]
fn check(lines: Vec<String>, expected: &str) {
    assert_eq!(lines.join("\n"), expected.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n"));
}

/// By hand, in the order of kinds (charge, idle, refund, efficiency, cost item, recovery, correction): speech 88.80 − 22.20 + 24.00 = 90.60; vision
/// 185.00 + 210.00 + 18.50 = 413.50; together 504.10, of a list price of 543.00.
#[test]
fn projects_and_their_users_add_up_to_the_statement() {
    let summary = Summary::of(&statement_of(MONTH));
    let mut lines = vec![shown(&summary.all)];
    for project in &summary.projects {
        lines.push(format!("{} {}", project.project.as_deref().unwrap(), shown(&project.figures)));
        lines.extend(
            project
                .users
                .iter()
                .map(|(user, figures)| format!("{} {}", user.as_deref().unwrap_or("-"), shown(figures))),
        );
    }
    check(
        lines,
        "7 entries, 53 of 54 h, list 543.00, 483.80 - -22.20 - 24.00 - 18.50 = 504.10
         speech 4 entries, 8 of 8 h, list 148.00, 88.80 - -22.20 - 24.00 - - = 90.60
         - 1 entries, 0 of 0 h, list -, - - - - 12.00 - - = 12.00
         bob 3 entries, 8 of 8 h, list 148.00, 88.80 - -22.20 - 12.00 - - = 78.60
         vision 3 entries, 45 of 46 h, list 395.00, 395.00 - - - - - 18.50 = 413.50
         ann 2 entries, 10 of 10 h, list 185.00, 185.00 - - - - - 18.50 = 203.50
         cy 1 entries, 35 of 36 h, list 210.00, 210.00 - - - - - - = 210.00",
    );
}

/// By hand: 88.80 of 8 hours is 11.10 an hour, 210.00 of 35 is 6.00, 185.00 of 10 is 18.50.
#[test]
fn models_stand_by_window_with_what_an_hour_came_to() {
    let summary = Summary::of(&statement_of(MONTH));
    let lines = summary.models.iter().map(|model| {
        let name = |name: &Option<Name>| name.as_deref().unwrap_or("-").to_owned();
        let price = model.figures.charge_per_card_hour().unwrap().normalize();
        let total = model.figures.total.to_minor_string();
        format!("{} {} {price} {total}", name(&model.model), name(&model.window))
    });
    check(lines.collect(), "H200 - 18.5 185.00\nH200 off-peak 11.1 88.80\nL40S - 6 210.00");
}

#[test]
fn what_stands_beside_the_hours_is_named_with_its_cause_and_a_correction_with_its_month_and_reason() {
    let summary = Summary::of(&statement_of(MONTH));
    let beside = summary.beside.iter().map(|beside| {
        let quantity = beside.quantity.as_ref().map_or("-".to_owned(), |(quantity, unit)| format!("{quantity} {unit}"));
        let (what, hours) = (beside.what.as_deref().unwrap(), beside.card_time.card_hours().normalize());
        format!(
            "{} {what}, {}, {quantity}, {hours} h, {}",
            beside.kind.name(),
            beside.entries,
            beside.amount.to_minor_string()
        )
    });
    check(beside.collect(), "refund node_fail, 1, -, -2 h, -22.20\ncost_item storage, 2, 4 TiB-month, 0 h, 24.00");
    let [correction] = &summary.corrections[..] else { panic!("one") };
    assert_eq!(correction.original_period.to_string(), "2026-02");
    assert_eq!((correction.corrects, correction.amount.to_minor_string().as_str()), (EntryKind::Charge, "18.50"));
    assert_eq!(correction.reason.as_deref(), Some("was 0.00, is 18.50"));
}

/// LED-3: a sum of list prices of which one isn't known is not known, whichever comes first.
#[test]
fn a_charge_without_a_list_price_leaves_none_to_its_sum() {
    let mut lines = [
        "2026-03 charge vision ann H200 - - 1 1 18.50 18.50",
        "2026-03 charge vision bob H200 - - 1 1 - 9.00",
        "2026-03 charge vision cy  H200 - - 1 1 18.50 18.50",
    ];
    for _ in 0..3 {
        lines.rotate_left(1);
        let summary = Summary::of(&statement_of(&lines.join("\n")));
        assert_eq!(summary.all.list_amount, None, "{lines:?}");
        assert_eq!(summary.all.total.to_minor_string(), "46.00");
    }
}

#[test]
#[should_panic(expected = "LED-6")]
fn a_statement_that_does_not_add_up_is_not_shown() {
    let mut statement = statement_of(MONTH);
    statement.total += Money::from_micros(10_000, statement.total.currency());
    _ = Summary::of(&statement);
}
