//! `import costs`: what a site lists as costs of a month.

use super::rules::{Rules, known_keys, refused};
use super::sheet::Sheet;
use super::{ListError, Listed};
use crate::import::fields::Kind;
use crate::import::map::MapFile;
use crate::import::record::Record;
use crate::import::when::Refusal;
use crate::statement::{CostAmount, CostItem};
use cardhour_domain::{Currency, Money, Month, Name};
use num_bigint::BigInt;
use rust_decimal::Decimal;

/// The fields of a cost item.
pub const COST_FIELDS: &[(&str, Kind)] = &[
    ("month", Kind::Text),
    ("name", Kind::Text),
    ("org", Kind::Text),
    ("project", Kind::Text),
    ("user", Kind::Text),
    ("cluster", Kind::Text),
    ("pool", Kind::Text),
    ("model", Kind::Text),
    ("quantity", Kind::Number),
    ("unit", Kind::Text),
    ("unit_price", Kind::Number),
    ("tariff_per_kwh", Kind::Number),
    ("amount", Kind::Number),
    ("currency", Kind::Text),
    ("reason", Kind::Text),
];

const OTHERS: &[(&str, &str)] = &[];

/// Beyond any month's cost and any price: so that sums of them fit 128 bits. Unit: the currency's.
const LARGEST: i64 = 1_000_000_000_000_000;
const TARIFF_DECIMALS: u32 = 12;

/// Reads a list of costs.
///
/// `map`: [`MapFile::default`] without one. A row's amount is its `amount`, or its `quantity` × `unit_price` rounded once, half to even, or, with a
/// `tariff_per_kwh`, what the energy of its month comes to. Errors: nothing says of which month or what a cost is; a map that doesn't fit.
pub fn costs(input: &[u8], map: &MapFile) -> Result<Listed<CostItem>, ListError> {
    let sheet = Sheet::read(input, "cost", map)?;
    let rules = Rules::bind(&sheet, map, COST_FIELDS, OTHERS)?;
    let mut listed = Listed { rows: Vec::new(), rejected: Vec::new(), rows_read: sheet.records.len() as u64 };
    if !sheet.records.is_empty() {
        rules.require("month", "of which month a cost is")?;
        rules.require("name", "what a cost is")?;
        rules.require("currency", "in which currency a cost is")?;
    }
    for record in &sheet.records {
        match record {
            Err(rejected) => listed.rejected.push(rejected.clone()),
            Ok(record) => {
                let outcome = known_keys(&sheet, record, map, COST_FIELDS, OTHERS);
                match outcome.and_then(|()| row(record, &rules)) {
                    Ok(cost) => listed.rows.push(cost),
                    Err(refusal) => listed.rejected.push(refused(record, input, refusal)),
                }
            }
        }
    }
    Ok(listed)
}

fn row(record: &Record, rules: &Rules) -> Result<CostItem, Refusal> {
    let need =
        |field: &'static str| rules.text(record, field).ok_or_else(|| Refusal::new(field, "is absent".to_owned()));
    let name = |field| rules.name(record, field);
    let month = Month::parse(need("month")?).map_err(|error| Refusal::new("month", error.to_string()))?;
    let currency = Currency::parse(need("currency")?).map_err(|error| Refusal::new("currency", error.to_string()))?;
    need("name")?;
    let cluster = Some(rules.cluster(record)).filter(|cluster| !cluster.is_empty());
    let amount = amount(record, rules, currency)?;
    Ok(CostItem {
        month,
        name: name("name").expect("it was asked for"),
        org: name("org"),
        project: name("project"),
        user: name("user"),
        cluster,
        pool: name("pool"),
        model: name("model"),
        quantity: quantity(record, rules)?,
        amount,
        reason: name("reason"),
    })
}

fn quantity(record: &Record, rules: &Rules) -> Result<Option<(Decimal, Name)>, Refusal> {
    let Some(quantity) = number(record, rules, "quantity")? else { return Ok(None) };
    let unit = rules.name(record, "unit").ok_or_else(|| Refusal::new("unit", "is absent: say of what".to_owned()))?;
    Ok(Some((quantity, unit)))
}

fn amount(record: &Record, rules: &Rules, currency: Currency) -> Result<CostAmount, Refusal> {
    let amount = number(record, rules, "amount")?;
    let unit_price = number(record, rules, "unit_price")?;
    let tariff = number(record, rules, "tariff_per_kwh")?;
    match (amount, unit_price, tariff) {
        (Some(amount), None, None) => {
            if amount.normalize().scale() > u32::from(currency.minor_digits()) {
                let reason =
                    format!("{amount} is finer than {currency} is, which has {} decimals", currency.minor_digits());
                return Err(Refusal::new("amount", reason));
            }
            Ok(CostAmount::Fixed(money(amount, Decimal::ONE, currency)))
        }
        (None, Some(price), None) => {
            let quantity = number(record, rules, "quantity")?;
            let quantity = quantity.ok_or_else(|| {
                Refusal::new("quantity", "is absent: how much is it that has this unit price".to_owned())
            })?;
            Ok(CostAmount::Fixed(money(quantity, price, currency)))
        }
        (None, None, Some(tariff)) => {
            if tariff.is_sign_negative() || tariff.normalize().scale() > TARIFF_DECIMALS {
                let reason = format!("{tariff} is no tariff: at least 0, with at most {TARIFF_DECIMALS} decimals");
                return Err(Refusal::new("tariff_per_kwh", reason));
            }
            Ok(CostAmount::PerKwh { tariff: tariff.normalize(), currency })
        }
        (None, None, None) => {
            Err(Refusal::new("amount", "is absent: say it, or quantity and unit_price, or tariff_per_kwh".to_owned()))
        }
        _ => Err(Refusal::new(
            "amount",
            "is said in two ways: amount, unit_price and tariff_per_kwh exclude each other".to_owned(),
        )),
    }
}

/// `quantity` × `price`, rounded once.
fn money(quantity: Decimal, price: Decimal, currency: Currency) -> Money {
    let numerator = BigInt::from(quantity.mantissa()) * price.mantissa() * 1_000_000;
    Money::from_fraction(&numerator, &BigInt::from(10).pow(quantity.scale() + price.scale()), currency)
}

fn number(record: &Record, rules: &Rules, field: &'static str) -> Result<Option<Decimal>, Refusal> {
    match rules.number(record, field)? {
        Some(number) if number.abs() > Decimal::from(LARGEST) => {
            Err(Refusal::new(field, format!("{number} is beyond {LARGEST}")))
        }
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Listed<CostItem> {
        costs(text.as_bytes(), &MapFile::default()).unwrap()
    }

    fn amounts(listed: &Listed<CostItem>) -> Vec<String> {
        let text = |item: &CostItem| match item.amount {
            CostAmount::Fixed(amount) => format!("{} {}", amount.to_minor_string(), amount.currency()),
            CostAmount::PerKwh { tariff, currency } => format!("{tariff} {currency} per kWh"),
        };
        listed.rows.iter().map(text).collect()
    }

    /// By hand: 12.5 TiB × 0.37 = 4.625, half to the even cent 4.62; yen have no decimals.
    #[test]
    fn an_amount_is_said_or_is_quantity_times_price_rounded_once() {
        let listed = read(
            "month,name,org,quantity,unit,unit_price,tariff_per_kwh,amount,currency,reason\n\
             2026-03,rent,,,,,,1200.50,USD,march\n\
             2026-03,storage,acme,12.5,TiB-month,0.37,,,USD,\n\
             2026-03,credit note,acme,,,,,-5,USD,outage of 3 March\n\
             2026-03,power,,,,,0.80,,USD,\n",
        );
        assert_eq!(listed.rejected, []);
        assert_eq!(amounts(&listed), ["1200.50 USD", "4.62 USD", "-5.00 USD", "0.8 USD per kWh"]);
        assert_eq!(listed.rows[1].quantity, Some((Decimal::new(125, 1), "TiB-month".into())));
        assert_eq!(listed.rows[2].reason.as_deref(), Some("outage of 3 March"));
        assert!(listed.rows[0].is_platforms() && !listed.rows[1].is_platforms());
    }

    #[test]
    fn toml_says_the_same() {
        let listed =
            read("[[cost]]\nmonth = \"2026-03\"\nname = \"rent\"\npool = \"a\"\namount = \"12\"\ncurrency = \"CNY\"\n");
        assert_eq!((amounts(&listed), listed.rows[0].pool.as_deref()), (vec!["12.00 CNY".to_owned()], Some("a")));
        let listed = read("[[cost]]\nmonth = \"2026-03\"\nname = \"rent\"\nprice = \"12\"\ncurrency = \"CNY\"\n");
        assert!(listed.rejected[0].reason.contains("\"price\""), "{:?}", listed.rejected);
    }

    #[test]
    fn rows_that_cannot_be_booked_say_field_and_reason() {
        let rows = "2026-3,rent,,,,,1,USD\n\
                    2026-03,,,,,,1,USD\n\
                    2026-03,rent,,,,,1.005,USD\n\
                    2026-03,rent,,,,,1.5,JPY\n\
                    2026-03,rent,,,,,,USD\n\
                    2026-03,rent,2,GB,3,,1,USD\n\
                    2026-03,rent,2,,3,,,USD\n\
                    2026-03,rent,,,3,,,USD\n\
                    2026-03,rent,,,,-1,,USD\n\
                    2026-03,rent,,,,,1,CYN\n\
                    2026-03,rent,,,,,a lot,USD\n";
        let listed = read(&format!("month,name,quantity,unit,unit_price,tariff_per_kwh,amount,currency\n{rows}"));
        let fields: Vec<(u64, &str)> = listed.rejected.iter().map(|row| (row.line, &*row.field)).collect();
        let expected = [
            "month",
            "name",
            "amount",
            "amount",
            "amount",
            "amount",
            "unit",
            "quantity",
            "tariff_per_kwh",
            "currency",
            "amount",
        ];
        assert_eq!(fields, (2u64..).zip(expected).collect::<Vec<_>>());
        assert_eq!((listed.rows.len(), listed.rows_read), (0, 11));
    }

    #[test]
    fn a_list_that_says_no_month_is_refused_as_a_whole() {
        let error = costs(b"name,amount,currency\nrent,1,USD\n", &MapFile::default()).unwrap_err();
        assert!(error.to_string().contains("of which month"), "{error}");
    }
}
