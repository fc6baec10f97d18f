//! The columns of every dataset: name, level, type, whether they may be null, in which versions, and what they say of a row.
//!
//! One table for both versions of Cost and Usage: in the order of names, as the specification lists them, ours behind them with `x_`. All columns of a
//! version are in its files, also those that a card pool has nothing for: consumers' queries name them, and validators take a column that is null better
//! than one that is missing. Source: the specification's column lists for 1.2 and 1.4; the test `columns_are_those_of_the_specification` has them too.

use super::{InvoiceLine, Kind, Line, Period, Value, Version};
use Level::{Conditional, Mandatory, Ours, Recommended};

/// How much FOCUS wants a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Always.
    Mandatory,
    /// Where what it tells of exists.
    Conditional,
    /// If possible.
    Recommended,
    /// Not FOCUS's: a column of ours, named with `x_`.
    Ours,
}

/// A column of a dataset of rows `R`.
#[derive(Debug)]
pub struct Column<R: 'static> {
    /// Its name.
    pub name: &'static str,
    /// How much FOCUS wants it.
    pub level: Level,
    /// What its values are.
    pub kind: Kind,
    /// Whether it may be null.
    pub may_be_null: bool,
    /// The versions that have it.
    pub versions: &'static [Version],
    /// What it says of a row.
    pub value: fn(&R) -> Value,
}

const fn column<R>(
    name: &'static str,
    level: Level,
    kind: Kind,
    may_be_null: bool,
    versions: &'static [Version],
    value: fn(&R) -> Value,
) -> Column<R> {
    Column { name, level, kind, may_be_null, versions, value }
}

const TEXT: Kind = Kind::Text;
const JSON: Kind = Kind::Json;
const INSTANT: Kind = Kind::Instant;
/// Amounts, hours and ratios.
const SIX: Kind = Kind::Decimal { scale: 6 };
/// Unit prices, and their products with hours.
const PRICE: Kind = Kind::Decimal { scale: 18 };
const NULL: bool = true;
const NEVER: bool = false;
const BOTH: &[Version] = &Version::ALL;
const UNTIL_1_2: &[Version] = &[Version::V1_2];
const FROM_1_4: &[Version] = &[Version::V1_4];

/// Cost and Usage.
#[rustfmt::skip]
pub static COST_AND_USAGE: &[Column<Line>] = &[
    column("AllocatedMethodDetails", Recommended, JSON, NULL, FROM_1_4, |_| Value::Absent),
    column("AllocatedMethodId", Conditional, TEXT, NULL, FROM_1_4, |_| Value::Absent),
    column("AllocatedResourceId", Conditional, TEXT, NULL, FROM_1_4, |_| Value::Absent),
    column("AllocatedResourceName", Conditional, TEXT, NULL, FROM_1_4, |_| Value::Absent),
    column("AllocatedTags", Conditional, JSON, NULL, FROM_1_4, |_| Value::Absent),
    column("AvailabilityZone", Recommended, TEXT, NULL, BOTH, |_| Value::Absent),
    column("BilledCost", Mandatory, SIX, NEVER, BOTH, |line| Value::micros(line.billed)),
    column("BillingAccountId", Mandatory, TEXT, NEVER, BOTH, |line| Value::Text(line.account.id.clone())),
    column("BillingAccountName", Mandatory, TEXT, NULL, BOTH, |line| Value::Text(line.account.name.clone())),
    column("BillingAccountType", Conditional, TEXT, NEVER, BOTH, |line| Value::Word(line.account.kind)),
    column("BillingCurrency", Mandatory, TEXT, NEVER, BOTH, |line| Value::text(Some(line.account.currency.code()))),
    column("BillingPeriodEnd", Mandatory, INSTANT, NEVER, BOTH, |line| Value::Instant(line.account.period.end())),
    column("BillingPeriodStart", Mandatory, INSTANT, NEVER, BOTH, |line| Value::Instant(line.account.period.start())),
    column("CapacityReservationId", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.entry.reservation.clone())),
    column("CapacityReservationStatus", Conditional, TEXT, NULL, BOTH, |line| Value::word(line.entry.reservation.as_ref().map(|_| "Unused"))),
    column("ChargeCategory", Mandatory, TEXT, NEVER, BOTH, |line| Value::Word(line.entry.category)),
    column("ChargeClass", Mandatory, TEXT, NULL, BOTH, |line| Value::word(line.is_correction().then_some("Correction"))),
    column("ChargeDescription", Mandatory, TEXT, NULL, BOTH, |line| Value::Text(line.entry.description.clone())),
    column("ChargeFrequency", Recommended, TEXT, NEVER, BOTH, |line| Value::Word(line.entry.frequency.name())),
    column("ChargePeriodEnd", Mandatory, INSTANT, NEVER, BOTH, |line| Value::Instant(line.to)),
    column("ChargePeriodStart", Mandatory, INSTANT, NEVER, BOTH, |line| Value::Instant(line.from)),
    column("CommitmentDiscountCategory", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("CommitmentDiscountId", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("CommitmentDiscountName", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("CommitmentDiscountQuantity", Conditional, SIX, NULL, BOTH, |_| Value::Absent),
    column("CommitmentDiscountStatus", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("CommitmentDiscountType", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("CommitmentDiscountUnit", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("CommitmentProgramEligibilityDetails", Conditional, JSON, NULL, FROM_1_4, |_| Value::Absent),
    column("ConsumedQuantity", Conditional, SIX, NULL, BOTH, |line| Value::decimal(line.consumed().map(|(quantity, _)| quantity))),
    column("ConsumedUnit", Conditional, TEXT, NULL, BOTH, |line| Value::word(line.consumed().map(|(_, unit)| unit))),
    column("ContractApplied", Conditional, JSON, NULL, FROM_1_4, |_| Value::Absent),
    column("ContractedCost", Mandatory, PRICE, NEVER, BOTH, |line| Value::Decimal(line.pricing.contracted_cost)),
    column("ContractedUnitPrice", Conditional, PRICE, NULL, BOTH, |line| Value::decimal(line.pricing.contracted_unit_price)),
    column("EffectiveCost", Mandatory, SIX, NEVER, BOTH, |line| Value::micros(line.billed)),
    column("HostProviderName", Mandatory, TEXT, NULL, FROM_1_4, |line| Value::Text(line.account.issuer.clone())),
    column("InvoiceDetailId", Conditional, TEXT, NULL, FROM_1_4, |line| Value::text(Some(line.entry.id.as_str()))),
    column("InvoiceId", Conditional, TEXT, NULL, BOTH, |line| Value::Text(line.account.invoice.clone())),
    column("InvoiceIssuerName", Mandatory, TEXT, NEVER, BOTH, |line| Value::Text(line.account.issuer.clone())),
    column("ListCost", Mandatory, PRICE, NEVER, BOTH, |line| Value::Decimal(line.pricing.list_cost)),
    column("ListUnitPrice", Conditional, PRICE, NULL, BOTH, |line| Value::decimal(line.pricing.list_unit_price)),
    column("PricingCategory", Conditional, TEXT, NULL, BOTH, |line| Value::word(line.pricing.category)),
    column("PricingCurrency", Conditional, TEXT, NEVER, BOTH, |line| Value::text(Some(line.account.currency.code()))),
    column("PricingCurrencyContractedUnitPrice", Conditional, PRICE, NULL, BOTH, |line| Value::decimal(line.pricing.contracted_unit_price)),
    column("PricingCurrencyEffectiveCost", Conditional, SIX, NEVER, BOTH, |line| Value::micros(line.billed)),
    column("PricingCurrencyListUnitPrice", Conditional, PRICE, NULL, BOTH, |line| Value::decimal(line.pricing.list_unit_price)),
    column("PricingQuantity", Mandatory, SIX, NULL, BOTH, |line| Value::decimal(line.pricing.quantity.map(|(quantity, _)| quantity))),
    column("PricingUnit", Mandatory, TEXT, NULL, BOTH, |line| Value::word(line.pricing.quantity.map(|(_, unit)| unit))),
    column("ProviderName", Mandatory, TEXT, NEVER, UNTIL_1_2, |line| Value::Text(line.account.issuer.clone())),
    column("PublisherName", Mandatory, TEXT, NEVER, UNTIL_1_2, |line| Value::Text(line.account.issuer.clone())),
    column("RegionId", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("RegionName", Conditional, TEXT, NULL, BOTH, |_| Value::Absent),
    column("ResourceId", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.resource.as_ref().map(|resource| resource.id.clone()))),
    column("ResourceName", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.resource.as_ref().and_then(|resource| resource.name.clone()))),
    column("ResourceType", Conditional, TEXT, NULL, BOTH, |line| Value::word(line.resource.as_ref().map(|resource| resource.kind))),
    column("ServiceCategory", Mandatory, TEXT, NEVER, BOTH, |line| Value::Word(line.service().category)),
    column("ServiceName", Mandatory, TEXT, NEVER, BOTH, |line| Value::Word(line.service().name)),
    column("ServiceProviderName", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Text(line.account.issuer.clone())),
    column("ServiceSubcategory", Recommended, TEXT, NEVER, BOTH, |line| Value::Word(line.service().subcategory)),
    column("SkuId", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.entry.sku.as_ref().map(|sku| sku.id.clone()))),
    column("SkuMeter", Conditional, TEXT, NULL, BOTH, |line| Value::word(line.entry.sku.as_ref().map(|sku| sku.meter))),
    column("SkuPriceDetails", Conditional, JSON, NULL, BOTH, |line| Value::text(line.entry.sku.as_ref().map(|sku| sku.details.clone()))),
    column("SkuPriceId", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.entry.sku.as_ref().map(|sku| sku.price_id.clone()))),
    column("SubAccountId", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.entry.sub_account.as_ref().map(|(id, _)| id.clone()))),
    column("SubAccountName", Conditional, TEXT, NULL, BOTH, |line| Value::text(line.entry.sub_account.as_ref().map(|(_, name)| name.clone()))),
    column("SubAccountType", Conditional, TEXT, NULL, BOTH, |line| Value::word(line.entry.sub_account.as_ref().map(|_| "Project"))),
    column("Tags", Conditional, JSON, NULL, BOTH, |line| Value::text(line.tags.clone())),
    column("x_CardHours", Ours, SIX, NULL, BOTH, |line| Value::decimal(line.card_hours)),
    column("x_Cards", Ours, SIX, NULL, BOTH, |line| Value::decimal(line.held.as_ref().and_then(|held| held.cards))),
    column("x_Coefficient", Ours, SIX, NULL, BOTH, |line| Value::decimal(line.entry.sku.as_ref().and_then(|sku| sku.coefficient))),
    column("x_CoverageRatio", Ours, SIX, NULL, BOTH, |line| Value::decimal(line.held.as_ref().and_then(|held| held.coverage))),
    column("x_EntryId", Ours, TEXT, NEVER, BOTH, |line| Value::text(Some(line.entry.id.as_str()))),
    column("x_EntryKind", Ours, TEXT, NEVER, BOTH, |line| Value::Word(line.entry.kind.name())),
    column("x_JobState", Ours, TEXT, NULL, BOTH, |line| Value::word(line.held.as_ref().and_then(|held| held.state))),
    column("x_OriginalEntryId", Ours, TEXT, NULL, BOTH, |line| Value::text(line.entry.original.as_ref().map(|id| id.as_str()))),
    column("x_Quantity", Ours, SIX, NULL, BOTH, |line| Value::decimal(line.entry.quantity.as_ref().map(|(quantity, _)| *quantity))),
    column("x_QuantityUnit", Ours, TEXT, NULL, BOTH, |line| Value::text(line.entry.quantity.as_ref().map(|(_, unit)| unit.clone()))),
    column("x_Reason", Ours, TEXT, NULL, BOTH, |line| Value::text(line.entry.reason.clone())),
    column("x_UnseenHours", Ours, SIX, NULL, BOTH, |line| Value::decimal(line.held.as_ref().map(|held| held.unseen_hours))),
    column("x_What", Ours, TEXT, NULL, BOTH, |line| Value::text(line.entry.key.what.clone())),
];

/// Invoice Detail.
#[rustfmt::skip]
pub static INVOICE_DETAIL: &[Column<InvoiceLine>] = &[
    column("BilledCost", Mandatory, SIX, NEVER, FROM_1_4, |line| Value::micros(line.amount.micros())),
    column("BillingAccountId", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Text(line.account.id.clone())),
    column("BillingCurrency", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::text(Some(line.account.currency.code()))),
    column("BillingPeriodEnd", Mandatory, INSTANT, NEVER, FROM_1_4, |line| Value::Instant(line.account.period.end())),
    column("BillingPeriodStart", Mandatory, INSTANT, NEVER, FROM_1_4, |line| Value::Instant(line.account.period.start())),
    column("ChargeCategory", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Word(line.category)),
    column("InvoiceDetailCreated", Mandatory, INSTANT, NEVER, FROM_1_4, |line| Value::Instant(line.told_at)),
    column("InvoiceDetailDescription", Mandatory, TEXT, NULL, FROM_1_4, |line| Value::Text(line.description.clone())),
    column("InvoiceDetailGrain", Mandatory, JSON, NULL, FROM_1_4, |line| Value::Text(line.grain.clone())),
    column("InvoiceDetailId", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::text(Some(line.id.as_str()))),
    column("InvoiceDetailLastUpdated", Mandatory, INSTANT, NEVER, FROM_1_4, |line| Value::Instant(line.told_at)),
    column("InvoiceId", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Text(line.account.invoice.clone())),
    column("InvoiceIssueDate", Mandatory, INSTANT, NULL, FROM_1_4, |line| line.issued_at.map_or(Value::Absent, Value::Instant)),
    column("InvoiceIssueStatus", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Word(if line.issued_at.is_some() { "Issued" } else { "Open" })),
    column("InvoiceIssuerName", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Text(line.account.issuer.clone())),
    column("PaymentCurrency", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::text(Some(line.account.currency.code()))),
    column("PaymentDueDate", Mandatory, INSTANT, NULL, FROM_1_4, |_| Value::Absent),
    column("PaymentTerms", Mandatory, TEXT, NEVER, FROM_1_4, |line| {
        // The column may not be empty; who doesn't say when to pay books it inside the house.
        line.account.payment_terms.clone().map_or(Value::Word("Internal chargeback"), Value::Text)
    }),
    column("ReferenceInvoiceId", Mandatory, TEXT, NEVER, FROM_1_4, |line| Value::Text(line.reference.clone())),
    column("PaymentCurrencyBilledCost", Conditional, SIX, NULL, FROM_1_4, |line| Value::micros(line.amount.micros())),
    column("PaymentCurrencyInvoiceDetailId", Conditional, TEXT, NULL, FROM_1_4, |line| Value::text(Some(line.id.as_str()))),
    column("PurchaseOrderNumber", Conditional, TEXT, NULL, FROM_1_4, |_| Value::Absent),
];

/// Billing Period.
#[rustfmt::skip]
pub static BILLING_PERIOD: &[Column<Period>] = &[
    column("BillingPeriodCreated", Mandatory, INSTANT, NEVER, FROM_1_4, |period| Value::Instant(period.during.start())),
    column("BillingPeriodEnd", Mandatory, INSTANT, NEVER, FROM_1_4, |period| Value::Instant(period.during.end())),
    column("BillingPeriodLastUpdated", Mandatory, INSTANT, NEVER, FROM_1_4, |period| Value::Instant(period.told_at)),
    column("BillingPeriodStart", Mandatory, INSTANT, NEVER, FROM_1_4, |period| Value::Instant(period.during.start())),
    column("BillingPeriodStatus", Mandatory, TEXT, NEVER, FROM_1_4, |period| Value::Word(if period.is_closed { "Closed" } else { "Open" })),
    column("InvoiceIssuerName", Mandatory, TEXT, NEVER, FROM_1_4, |period| Value::Text(period.issuer.clone())),
];
