//! A statement as a page made to be printed: one file, no script, nothing fetched.

use super::bars::bars;
use super::paper::{self, Paper};
use crate::render::bars::Bars;
use askama::Template;
use cardhour_books::statement::{EntryKind, Figures};
use cardhour_domain::{CardTime, Money, Name};
use rust_decimal::Decimal;
use std::fmt::Write as _;

#[derive(Template)]
#[template(path = "statement.html")]
struct Page<'a> {
    paper: &'a Paper<'a>,
    style: &'static str,
    /// What stands in the margins of each page, as CSS.
    margins: String,
    bars: Option<Bars>,
    kinds: Vec<EntryKind>,
}

/// The page of a statement. The same statement gives the same bytes.
pub fn write(paper: &Paper<'_>) -> Vec<u8> {
    let statement = paper.statement;
    let page = Page {
        paper,
        style: include_str!("../../templates/statement.css"),
        margins: margins(&format!("{} · {} · {}", statement.number, statement.account, paper.month())),
        bars: bars(paper),
        kinds: paper.kinds(),
    };
    page.render().expect("a template that compiled writes into memory").into_bytes()
}

/// The foot of every page: what it is of at the left, which page at the right.
fn margins(foot: &str) -> String {
    format!(
        "@page {{ @bottom-left {{ content: {}; }} @bottom-right {{ content: \"Page \" counter(page) \" of \" counter(pages); }} }}",
        css_text(foot)
    )
}

/// A text as CSS takes it: whatever isn't a letter or a digit of ASCII as its code, so that no name ends the text or the page's style.
fn css_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else {
            _ = write!(out, "\\{:x} ", u32::from(c));
        }
    }
    out.push('"');
    out
}

impl Page<'_> {
    fn name<'n>(&self, name: &'n Option<Name>) -> &'n str {
        paper::name(name)
    }

    fn money(&self, amount: &Money) -> String {
        paper::money(*amount)
    }

    fn known(&self, amount: &Option<Money>) -> String {
        amount.map_or_else(String::new, paper::money)
    }

    fn amount(&self, figures: &Figures, kind: &EntryKind) -> String {
        self.known(&figures.amount(*kind))
    }

    fn charged(&self, figures: &Figures) -> String {
        self.known(&figures.amount(EntryKind::Charge))
    }

    fn hours(&self, time: &CardTime) -> String {
        paper::card_hours(*time)
    }

    /// Hours beside an amount that need not have any.
    fn hours_if_any(&self, time: &CardTime) -> String {
        if time.is_zero() { String::new() } else { paper::card_hours(*time) }
    }

    fn proven(&self, figures: &Figures) -> String {
        figures.known.proven().map_or_else(String::new, crate::render::percent)
    }

    fn seen(&self, figures: &Figures) -> String {
        figures.known.seen().map_or_else(String::new, crate::render::percent)
    }

    fn price(&self, figures: &Figures) -> String {
        figures.charge_per_card_hour().map_or_else(String::new, |price| {
            let mut price = price.round_dp(4);
            price.rescale(4);
            crate::render::grouped(&price.to_string())
        })
    }

    fn kind(&self, kind: &EntryKind) -> &'static str {
        paper::kind_words(*kind)
    }

    /// What an amount beside the hours is about: its cause and why.
    fn about(&self, what: &Option<Name>, reason: &Option<Name>) -> String {
        let what = what.as_deref().map(paper::cause_words);
        what.into_iter().chain(reason.as_deref().map(str::to_owned)).collect::<Vec<_>>().join(": ")
    }

    fn because(&self, reason: &Option<Name>) -> String {
        reason.as_deref().unwrap_or_default().to_owned()
    }

    fn quantity(&self, quantity: &Option<(Decimal, Name)>) -> String {
        quantity.as_ref().map_or_else(String::new, |(quantity, unit)| format!("{} {unit}", quantity.normalize()))
    }

    fn many(&self, entries: &usize) -> String {
        if *entries == 1 {
            "1 entry".to_owned()
        } else {
            format!("{} entries", crate::render::grouped(&entries.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_text_of_a_margin() {
        assert_eq!(css_text("a\"}</style>"), "\"a\\22 \\7d \\3c \\2f style\\3e \"");
        assert_eq!(css_text("卡"), "\"\\5361 \"");
    }
}
