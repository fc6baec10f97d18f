//! `/metrics` of the real collector on a stand-in for the driver, read by people, by `promtool` and by a real Prometheus.

mod boards;
mod captures;
mod dcgm_text;
mod field_reports;
pub mod names;
pub mod node;
mod page;
mod released;
mod rules;
mod scrapes;
mod trouble;
