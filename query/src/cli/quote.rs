//! Options of `quote`.

use super::report::Output;
use crate::quote::QuoteRequest;
use crate::request::Moment;
use cardhour_domain::{CardShare, Zone};
use clap::Args;
use rust_decimal::Decimal;
use std::path::PathBuf;

/// Options of `quote`.
#[derive(Debug, Args)]
pub struct QuoteArgs {
    /// How many cards
    #[arg(long, value_name = "N", value_parser = parse_cards)]
    pub cards: CardShare,
    /// For how many hours
    #[arg(long, value_name = "H")]
    pub hours: Decimal,
    /// From when, in the ledger's zone; on the next quarter hour [default: now]
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// Model of the cards, as the records call it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Who pays, at the top [default: as the books have the project]
    #[arg(long, value_name = "NAME")]
    pub org: Option<String>,
    /// Who pays
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Whose it is [default: you, as $USER says]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Queue or partition
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Class of the job
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Pool of the cards
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// Cluster of the cards
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Another price book than the ledger's prices.toml
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl QuoteArgs {
    /// As a question to the books, of `user` where no other is named.
    pub fn request(&self, user: Option<String>, zone: Zone) -> QuoteRequest {
        QuoteRequest {
            cards: self.cards,
            hours: self.hours,
            from: self.from.map(|moment| moment.instant(zone)),
            model: self.model.clone(),
            org: self.org.clone(),
            project: self.project.clone(),
            user: self.user.clone().or(user),
            queue: self.queue.clone(),
            class: self.class.clone(),
            pool: self.pool.clone(),
            cluster: self.cluster.clone(),
            prices: self.prices.clone(),
        }
    }
}

fn parse_cards(text: &str) -> Result<CardShare, String> {
    let cards: i64 = text.parse().map_err(|_| "not a whole number of cards".to_owned())?;
    let share = CardShare::from_cards(cards).map_err(|error| error.to_string())?;
    if share.is_zero() { Err("none is no question".to_owned()) } else { Ok(share) }
}
