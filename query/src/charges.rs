//! The table `charges` for SQL: the leaves of the bill, worked out when asked for.

use crate::error::Error;
use arrow::array::{ArrayRef, Decimal128Array, StringArray};
use arrow::record_batch::RecordBatch;
use cardhour_books::bill::Charge;
use cardhour_domain::{CardTime, Money, Name};
use std::sync::Arc;

/// Its name.
pub const TABLE: &str = "charges";

/// Its rows. Shape: card-time in parts × milliseconds as Decimal(38, 0), money as Decimal(38, 6), absent where there is no
/// price. Errors: none that a charge can cause.
pub fn batch(charges: &[Charge]) -> Result<RecordBatch, Error> {
    let text = |of: &dyn Fn(&Charge) -> Option<String>| -> ArrayRef {
        Arc::new(charges.iter().map(of).collect::<StringArray>())
    };
    let name = |of: fn(&Charge) -> &Option<Name>| text(&move |charge| of(charge).as_ref().map(|name| name.to_string()));
    let time = |of: fn(&Charge) -> CardTime| -> Result<ArrayRef, Error> {
        let values = charges.iter().map(|charge| Some(of(charge).part_ms()));
        Ok(Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(38, 0)?))
    };
    let money = |of: fn(&Charge) -> Option<Money>| -> Result<ArrayRef, Error> {
        let values = charges.iter().map(|charge| of(charge).map(Money::micros));
        Ok(Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(38, 6)?))
    };
    let currency = |charge: &Charge| charge.cost.or(charge.list_cost).map(|cost| cost.currency().to_string());
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("line", text(&|charge| Some(charge.line.to_string())), false),
        ("month", text(&|charge| Some(charge.month.to_string())), false),
        ("org", name(|charge| &charge.org), true),
        ("project", name(|charge| &charge.project), true),
        ("user", name(|charge| &charge.user), true),
        ("model", name(|charge| &charge.model), true),
        ("price_line", name(|charge| &charge.price_line), true),
        ("price_version", name(|charge| &charge.price_version), true),
        ("window", name(|charge| &charge.window), true),
        ("card_time", time(|charge| charge.card_time)?, false),
        ("billed_time", time(|charge| charge.billed_time)?, false),
        ("list_cost", money(|charge| charge.list_cost)?, true),
        ("cost", money(|charge| charge.cost)?, true),
        ("currency", text(&currency), true),
    ])?)
}
