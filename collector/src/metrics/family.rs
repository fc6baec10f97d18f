//! Writes families of series, each whole and none empty.

use prometheus_client::encoding::{
    CounterValueEncoder, DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabel, EncodeLabelSet,
    GaugeValueEncoder, LabelSetEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;

/// A label.
pub type Label<'a> = (&'static str, &'a str);

/// A series: labels it shares with others, labels of its own, and its value.
pub type Row<'a> = (&'a [Label<'a>], Option<Label<'a>>, f64);

/// The page, family by family.
pub struct Families<'a>(DescriptorEncoder<'a>);

/// What a family is called and means. A counter's name gets `_total` after its unit, an information's `_info`.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Without its unit.
    pub name: &'static str,
    /// At the end of its name; empty for a plain number.
    pub unit: &'static str,
    /// For people.
    pub help: &'static str,
    /// What it is.
    pub kind: MetricType,
}

/// A value now.
pub const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    Family { name, unit, help, kind: MetricType::Gauge }
}

/// A value that only grows, and may begin again at 0.
pub const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    Family { name, unit, help, kind: MetricType::Counter }
}

impl<'e> Families<'e> {
    /// An empty page.
    pub fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self(encoder)
    }

    /// A family with all its series; nothing where it has none.
    pub fn write<'a>(&mut self, family: Family, rows: impl IntoIterator<Item = Row<'a>>) -> fmt::Result {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let unit = (!family.unit.is_empty()).then(|| Unit::Other(family.unit.to_owned()));
        let mut metric = self.0.encode_descriptor(family.name, family.help, unit.as_ref(), family.kind)?;
        for (shared, own, value) in rows {
            let labels = Labels(shared, own);
            let mut series = metric.encode_family(&labels)?;
            match family.kind {
                MetricType::Counter => series.encode_counter::<NoLabelSet, Number, f64>(&Number(value), None)?,
                _ => series.encode_gauge(&Number(value))?,
            }
        }
        Ok(())
    }

    /// A family of one series without labels.
    pub fn one(&mut self, family: Family, value: impl Into<Option<f64>>) -> fmt::Result {
        self.write(family, value.into().map(|value| (&[][..], None, value)))
    }
}

struct Labels<'a>(&'a [Label<'a>], Option<Label<'a>>);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        self.0.iter().chain(&self.1).try_for_each(|label| label.encode(encoder.encode_label()))
    }
}

/// A whole number without a point where it is one.
struct Number(f64);

impl Number {
    fn whole(&self) -> Option<i64> {
        // Doubles are exact up to here.
        (self.0.fract() == 0.0 && self.0.abs() < 9e15).then_some(self.0 as i64)
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, encoder: &mut GaugeValueEncoder) -> fmt::Result {
        match self.whole() {
            Some(whole) => EncodeGaugeValue::encode(&whole, encoder),
            None => EncodeGaugeValue::encode(&self.0, encoder),
        }
    }
}

impl EncodeCounterValue for Number {
    fn encode(&self, encoder: &mut CounterValueEncoder) -> fmt::Result {
        match self.whole().and_then(|whole| u64::try_from(whole).ok()) {
            Some(whole) => EncodeCounterValue::encode(&whole, encoder),
            None => EncodeCounterValue::encode(&self.0, encoder),
        }
    }
}
