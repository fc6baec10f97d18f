//! What is exported of the books: a month's statements with what has to be said on each; and what another price list would come to.

use crate::books::{Books, Reported, SIMULATED};
use crate::error::Error;
use crate::request::ReportRequest;
use cardhour_books::bill::charges;
use cardhour_books::price_trial::price_trial;
use cardhour_books::prices::OtherCurrency;
use cardhour_books::report::{ReportInput, ReportQuery, report};
use cardhour_books::statement::Statement;
use cardhour_domain::{BUCKET_MS, CardTime, Interval, Month, Timestamp};
use std::path::Path;

/// The statements of a month, and what stands on each of them.
#[derive(Clone, Debug)]
pub struct IssuedMonth {
    /// One an organisation.
    pub statements: Vec<Statement>,
    /// Sentences of the ledger's own: that it is simulated, that time has no price, that the month was signed off.
    pub remarks: Vec<String>,
    /// Something of the month has no entry: time without a price, a cost that can't be booked.
    pub has_holes: bool,
}

impl Books {
    /// The statements of a month, to be written to files. Errors: as [`Books::billed`].
    pub async fn issued(&self, month: Month, prices: Option<&Path>) -> Result<IssuedMonth, Error> {
        let billed = self.billed(month, prices).await?;
        let mut remarks = Vec::new();
        if self.is_demo() {
            remarks.push(SIMULATED.to_owned());
        }
        let signed_off = billed.closing.as_ref().and_then(|closing| closing.sign_off.as_ref());
        remarks.extend(signed_off.map(|reason| format!("Signed off when the month was closed: {reason}")));
        // A closed month has none: closing refuses them.
        let unpriced: CardTime = match billed.closing {
            Some(_) => CardTime::ZERO,
            None => charges(&billed.input, &billed.slots, Some(&billed.book))
                .into_iter()
                .filter(|charge| charge.cost.is_none())
                .map(|charge| charge.billed_time)
                .sum(),
        };
        if !unpriced.is_zero() {
            remarks.push(format!(
                "{} card-hours of the pool in this month have no price in the price book, and are in no statement",
                unpriced.card_hours()
            ));
        }
        let is_whole = unpriced.is_zero() && billed.unbooked.is_empty() && billed.uncorrected.is_empty();
        remarks
            .extend(billed.unbooked.iter().chain(&billed.uncorrected).map(|what| format!("In no statement: {what}")));
        // Whoever gets a statement isn't told of others' lines: those that it is of say how much was seen.
        if !billed.seen.is_empty() {
            remarks.push(
                "Some lines of this month rest on time of which not all was seen; their reasons say how much"
                    .to_owned(),
            );
        }
        if prices.is_some() && billed.closing.is_some() {
            remarks.push("The month is closed, and keeps the prices that it was closed by".to_owned());
        }
        Ok(IssuedMonth { statements: billed.statements, remarks, has_holes: !is_whole })
    }

    /// The bill of some time by the price book in force, beside that by `prices`. Errors: no price book on either side, faulty ones, books of different
    /// currencies, a span that can't be cut, the ledger's own.
    pub async fn price_trial(&self, request: &ReportRequest, prices: &Path) -> Result<Reported, Error> {
        let reading = self.ledger().read().await?;
        let all = reading.extent();
        let range = self.range(request.span, request.zone, all)?;
        let now = self.prices_in_force(None, &reading, range)?.ok_or(Error::NoPrices)?;
        let then = self.prices(Some(prices))?.ok_or(Error::NoPrices)?;
        if now.currency() != then.currency() {
            let (first, other) = (now.currency().to_string(), then.currency().to_string());
            return Err(OtherCurrency { first, other }.into());
        }
        let query = ReportQuery { report: request.report, by: request.by.clone(), range, zone: request.zone };
        // Empty books have no time; any will do to make a report without rows.
        let first = || Interval::new(Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(BUCKET_MS));
        let covers = all.or_else(first).expect("a bucket is not empty");
        let mut bills = Vec::with_capacity(2);
        for book in [now, then] {
            let slots = query.slots(covers, Some(&book), self.zone())?;
            let input = if all.is_some() { reading.input(&slots).await? } else { ReportInput::default() };
            let query = query.clone();
            let made = tokio::task::spawn_blocking(move || report(&input, &slots, Some(&book), &query));
            bills.push(made.await.expect("a report is made or its fault is a defect of ours"));
        }
        let mut table = price_trial(&bills[0], &bills[1], request.by.len());
        table.notes.extend(self.note_of_policy());
        self.remark(&mut table);
        Ok(Reported { table, has_holes: bills.iter().any(|bill| !bill.holes.is_empty()) })
    }
}
