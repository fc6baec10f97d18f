//! How quotas stand: what each owner is guaranteed, holds and waits for, and what is left of its month.
//!
//! Start at [`Books::quota_table`]. Does not: work out a use or a band, which `cardhour_books::quotas` and `cardhour_decisions::month` do.

use crate::books::Books;
use crate::error::Error;
use crate::planned::QUOTAS_FILE;
use cardhour_books::quotas::{CardQuota, Holder, MonthSpan, MonthUse, Quota, Quotas, month_slots, month_uses};
use cardhour_books::report::local;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_decisions::month::{MonthStanding, standings};
use cardhour_domain::{BUCKET_MS, Name, Timestamp};
use cardhour_ledger::Reading;
use cardhour_scheduler_core::capacity::BucketPolicy;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// A month's use of all quotas of cards, and how its buckets stand.
#[derive(Clone, Debug)]
pub(crate) struct QuotaMonths {
    span: MonthSpan,
    uses: Vec<MonthUse>,
    /// With the place of each among the uses.
    pub(crate) standings: Vec<(usize, MonthStanding)>,
}

impl Books {
    /// The month just before `asked`, as far as the books are in it; none where they say nothing of it. Errors: a zone whose days can't be cut; the ledger's own.
    pub(crate) async fn quota_months(
        &self,
        reading: &Reading,
        quotas: &Quotas,
        asked: Timestamp,
    ) -> Result<Option<QuotaMonths>, Error> {
        let zone = self.zone();
        let span = reading.extent().and_then(|all| MonthSpan::of(asked, all, reading.last_word(), zone));
        let Some(span) = span else { return Ok(None) };
        let slots = month_slots(&span, zone)?;
        let input = reading.input(&slots).await?;
        let quotas = quotas.clone();
        let making = tokio::task::spawn_blocking(move || {
            let uses = month_uses(&quotas, &input, &slots, &span);
            let standings = standings(&quotas, &uses, &span, &BucketPolicy::default());
            QuotaMonths { span, uses, standings }
        });
        Ok(Some(making.await.expect("a month's use is worked out or its fault is a defect of ours")))
    }

    /// Whether a window of the price book holds `at`; none where it has no windows, and then no time is off-peak. Errors: the price book is faulty.
    pub(crate) fn is_off_peak(&self, at: Timestamp) -> Result<Option<bool>, Error> {
        let Some(book) = self.prices(None)?.filter(|book| !book.windows().is_empty()) else { return Ok(None) };
        let zone = book.zone();
        let Some(today) = zone.date(at) else { return Ok(None) };
        // One that began yesterday may go on.
        let days = [Some(today), today.pred_opt()];
        let holds = |window: &cardhour_books::prices::Window| {
            let on = |day| window.on(day, zone).ok().flatten().is_some_and(|during| during.contains(at));
            days.into_iter().flatten().any(on)
        };
        Ok(Some(book.windows().iter().any(holds)))
    }

    /// How the quotas of `quotas.toml` stand at `asked`; none: at the last moment that the books speak of, which is the latest that is taken.
    ///
    /// Errors: `quotas.toml` is faulty; the ledger's own.
    pub async fn quota_table(&self, asked: Option<Timestamp>) -> Result<Table, Error> {
        let quotas = self.quotas()?;
        let reading = self.ledger().read().await?;
        let end = reading
            .extent()
            .and_then(|all| Timestamp::from_unix_ms(all.end().unix_ms() - 1).bucket_start().checked_add_ms(BUCKET_MS));
        let at = end.map(|end| asked.map_or(end, |asked| asked.min(end)));
        let months = match at {
            Some(at) => self.quota_months(&reading, &quotas, at).await?,
            None => None,
        };
        let zone = self.zone();
        let rows = rows(&quotas, months.as_ref());
        let title = match at {
            Some(at) => format!("quotas, {}, {zone}", local(zone, at)),
            None => "quotas, empty books".to_owned(),
        };
        let columns = COLUMNS.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect();
        let mut table = Table { title, columns, rows, total: None, notes: Vec::new() };
        if quotas.quotas.is_empty() {
            table.notes.push(format!("no quotas: {QUOTAS_FILE} in the ledger's folder says who is guaranteed what"));
        } else if let Some(QuotaMonths { span, .. }) = &months {
            table.notes.push(format!(
                "held and waiting: at {}; used and hit rate: since {}",
                local(zone, span.said_until),
                local(zone, span.month.start())
            ));
        } else if at.is_some() {
            table.notes.push("the books say nothing of that month yet".to_owned());
        }
        self.remark(&mut table);
        Ok(table)
    }
}

const COLUMNS: [(&str, Kind); 17] = [
    ("cluster", Kind::Text),
    ("model", Kind::Text),
    ("org", Kind::Text),
    ("project", Kind::Text),
    ("user", Kind::Text),
    ("guaranteed_cards", Kind::Count),
    ("borrow_limit", Kind::Count),
    ("lend_limit", Kind::Count),
    ("max_cards", Kind::Count),
    ("weight", Kind::Money),
    ("held_cards", Kind::Hours),
    ("waiting_jobs", Kind::Count),
    ("hit_rate", Kind::Ratio),
    ("used_card_hours", Kind::Hours),
    ("month_card_hours", Kind::Hours),
    ("forecast_card_hours", Kind::Hours),
    ("band", Kind::Text),
];

/// A row for each quota, and of one of cards in any cluster for each cluster that has its model.
fn rows(quotas: &Quotas, months: Option<&QuotaMonths>) -> Vec<Vec<Value>> {
    let standings: BTreeMap<usize, &MonthStanding> =
        months.into_iter().flat_map(|months| &months.standings).map(|(place, standing)| (*place, standing)).collect();
    let mut rows = Vec::new();
    for (number, quota) in quotas.quotas.iter().enumerate() {
        let uses = months.into_iter().flat_map(|months| months.uses.iter().enumerate());
        let of_it: Vec<(usize, &MonthUse)> = uses.filter(|(_, of)| of.quota == number).collect();
        if of_it.is_empty() {
            rows.push(row(quotas, quota, quota.cluster.as_ref(), None, None));
        }
        for (place, of) in of_it {
            rows.push(row(quotas, quota, of.cluster.as_ref(), Some(of), standings.get(&place).copied()));
        }
    }
    rows
}

fn row(
    quotas: &Quotas,
    quota: &Quota,
    cluster: Option<&Name>,
    used: Option<&MonthUse>,
    standing: Option<&MonthStanding>,
) -> Vec<Value> {
    let name = |name: Option<&Name>| name.map_or(Value::Absent, |name| Value::Text(name.clone()));
    let decimal = |value: Option<Decimal>| value.map_or(Value::Absent, Value::Decimal);
    let Holder { org, project, user } = &quota.holder;
    let cards = quota.cards.as_ref();
    let count = |of: fn(&CardQuota) -> Option<u32>| {
        cards.and_then(of).map_or(Value::Absent, |cards| Value::Count(u64::from(cards)))
    };
    // An owner's weight is in one of its quotas, and holds for all of them.
    let is_same = |other: &&Quota| other.holder == quota.holder && other.cluster == quota.cluster;
    let weight = quotas.quotas.iter().filter(is_same).find_map(|other| other.weight_milli);
    let weight = weight.map_or(Decimal::ONE, |milli| Decimal::from_i128_with_scale(milli.into(), 3).normalize());
    vec![
        name(cluster),
        name(cards.map(|cards| &cards.model)),
        Value::Text(org.clone()),
        name(project.as_ref()),
        name(user.as_ref()),
        count(|cards| Some(cards.guaranteed)),
        count(|cards| cards.borrow_limit),
        count(|cards| cards.lend_limit),
        count(|cards| cards.most),
        Value::Decimal(weight),
        decimal(used.map(|used| used.held_cards)),
        used.map_or(Value::Absent, |used| Value::Count(used.waiting)),
        decimal(used.and_then(|used| used.hit_rate)),
        decimal(used.map(|used| used.used.card_hours())),
        decimal(cards.and_then(|cards| cards.month).map(|month| month.card_hours())),
        decimal(standing.and_then(|standing| standing.standing.forecast).map(|forecast| forecast.card_hours())),
        standing.map_or(Value::Absent, |standing| Value::Text(standing.standing.band.name().into())),
    ]
}
