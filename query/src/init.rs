//! `init`: a ledger, and beside it a commented config, price book and billing policy to fill in.

use crate::billing::BILLING_FILE;
use crate::books::{Books, PRICES_FILE};
use crate::config::{Config, Surroundings};
use crate::error::Error;
use crate::terminal::write_file;
use cardhour_domain::Zone;
use std::path::{Path, PathBuf};

/// What was made, and what was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Each file or folder, and whether it is new.
    pub things: Vec<(PathBuf, bool)>,
}

/// Makes what isn't there: the ledger, `prices.toml` and `billing.toml` in it, and a config file. What is there stays as it is.
///
/// `config_file`: where the config goes; none: the first place that is looked at. Errors: the ledger has another zone; a file can't be
/// written.
pub async fn init(
    place: &str,
    zone: Option<Zone>,
    config: &Config,
    config_file: Option<&Path>,
    surroundings: &Surroundings,
) -> Result<Made, Error> {
    let is_new = Books::is_missing(place).await;
    let books = Books::open_or_make(place, zone.or(config.zone), false, config.sql).await?;
    let mut things = Vec::new();
    if let Some(folder) = books.ledger().folder() {
        things.push((folder.clone(), is_new));
        let prices = folder.join(PRICES_FILE);
        things.push(put_if_absent(prices, &prices_text(books.zone()))?);
        things.push(put_if_absent(folder.join(BILLING_FILE), BILLING_TEXT)?);
    }
    let first = || surroundings.config_files().into_iter().next();
    if let Some(file) = config_file.map(Path::to_owned).or_else(first) {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|source| Error::File {
                doing: "make the folder",
                path: folder.to_owned(),
                source,
            })?;
        }
        things.push(put_if_absent(file, &config_text(place, books.zone()))?);
    }
    Ok(Made { things })
}

fn put_if_absent(path: PathBuf, text: &str) -> Result<(PathBuf, bool), Error> {
    let is_new = !path.exists();
    if is_new {
        write_file(&path, text.as_bytes())?;
    }
    Ok((path, is_new))
}

fn config_text(place: &str, zone: Zone) -> String {
    let place = std::path::absolute(place).map_or_else(|_| place.to_owned(), |path| path.display().to_string());
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    format!(
        r#"# cardhour's config. `cardhour config` prints what is in force; every key has a default.

# The ledger's folder. The option --ledger and the variable CARDHOUR_LEDGER go before it.
ledger = {ledger}

# Billing zone of a ledger that is made. An existing ledger keeps its own for ever.
zone = {zone}

# Where `cardhour serve` keeps its token. Default: the file "token" in the ledger's folder.
# token_file = "/etc/cardhour/token"

[http]
# What `cardhour serve` listens on. Beyond this machine it needs a certificate with its chain and its key, both PEM; renewed files are read by themselves.
# address = "127.0.0.1:7780"
# certificate_file = "/etc/cardhour/service.pem"
# key_file = "/etc/cardhour/service.key"

[sql]
# How far one query may go.
# timeout = "30s"
# memory_mib = 1024
# max_rows = 1000000

[alerts]
# Who is told when a budget of the ledger's budgets.toml reaches a threshold; docs/budgets.md has all keys.
# alertmanager = "http://127.0.0.1:9093"
# webhook = "https://chat.example.org/hook"
# smtp = "smtp://mail.example.org"
# mail_from = "cardhour@example.org"
# mail_to = ["finance@example.org"]

[people]
# The address of a user.
# mail = "{{user}}@example.org"

# Whose latencies stand in the weekly report; docs/checkpoints.md has all keys.
# [inference]
# prometheus = "http://127.0.0.1:9090"
# query = 'histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))'
# model_label = "model_name"

# What is delivered by schedule, as often as there is something; docs/delivery.md has all keys.
# [[delivery]]
# name = "finance"
# what = "statement"                # of the months that are closed; also "focus 1.4", "report weekly", "report bill"
# format = ["xlsx", "html"]
# to = "/srv/finance"               # or s3://BUCKET/PREFIX
# day = 3
# time = "06:00"
"#,
        ledger = quoted(&place),
        zone = quoted(zone.name())
    )
}

/// A price book that says nothing yet: all of it is in comments.
fn prices_text(zone: Zone) -> String {
    format!(
        r#"# The price book. Without one there are hours and no money. Take out the marks in front of what you need.
#
# currency = "CNY"                  # ISO 4217; one to a book
# zone = "{zone}"          # the ledger's billing zone: dates and windows are local times in it
#
# [[window]]
# name = "off-peak"
# days = "mon-sun"                  # days on which it begins
# from = "22:00"
# to = "08:00"                      # on the next day, where it is before `from`
#
# [[price]]
# from = "2026-01-01"               # holds until a later one for the same cards
# model = "NVIDIA H200*"            # glob; also mig_profile, share, pool, queue, class, org, project, cluster; the most specific wins
# per_card_hour = "18.50"
# coefficient = "2.4"               # card-hours × coefficient = standard card-hours
# off-peak = "0.6"                  # factor in the window of that name
#
# [[price]]
# from = "2026-01-01"
# model = "*"                       # what nothing above is for
# per_card_hour = "6.00"
# coefficient = "1"
#
# `cardhour doctor` says what is wrong with it, and which cards have no price.
"#
    )
}

/// A billing policy that says nothing yet: all of it is in comments.
const BILLING_TEXT: &str = r#"# The billing policy. Without one, held cards are charged at the price book's prices, and nothing else. Take out the marks in front of what you need.
#
# mode = "rate"                     # or "absorb": the month's own cost (cardhour import costs) spread by billed hours × coefficient
# fiscal_year_starts = "01"         # month in which a fiscal year starts
#
# [statement]
# issuer = "GPU Platform"
# prefix = "CH"                     # statements are numbered CH-2026-03-ORG
# tax_included = false
# tax_note = "Net of VAT."
# payment_terms = "30 days"
# minimum_coverage = "0.95"         # close asks for a reason below it
# minimum_seen = "0.95"             # and where less is seen of what measured energy or use is priced by
#
# [statement.accounts]
# acme = "Acme Ltd"                 # org = what its statement calls it
#
# [capacity]
# free = "shared"                   # none, line (the platform's own), shared (over the projects)
# share_by = "cost"                 # cost, card_hours, even
# reserved = "owner"                # none, line, owner (of the reservation)
#
# [refunds]                         # which part is given back
# node_fail = "1"
# fatal_xid = "1"
# preempted = "0.5"
# reclaimed = "1"                   # jobs with a label wrongful_reclaim, and those of cardhour decisions wrongful
# of = "held"                       # or "lost": only the time whose work is gone
#
# [efficiency]
# policy = "discount"               # explain, discount, surcharge
# minimum_use_coverage = "0.5"      # of less seen, nothing is told
#
# [[efficiency.tier]]
# at_least = "0.8"                  # or below = "0.2"
# part = "0.05"                     # of the charges
#
# [[used_basis]]                    # price × time at work instead of time held
# queue = "serverless*"             # a glob; or class, or both
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_books::prices::PriceBook;
    use cardhour_books::statement::BillingPolicy;

    #[test]
    fn what_is_written_can_be_read() {
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        let config = Config::parse(&config_text("/srv/books", zone), Path::new("config.toml")).unwrap();
        assert_eq!((config.ledger.as_deref(), config.zone), (Some("/srv/books"), Some(zone)));
        assert_eq!(PriceBook::parse(&prices_text(zone)).unwrap(), None, "nothing is priced before somebody says so");
    }

    #[test]
    fn the_commented_inference_and_delivery_are_right_once_their_marks_are_taken_out() {
        let text = config_text("/srv/books", Zone::UTC);
        let at = text.find("# [inference]").expect("it is there");
        let is_of_config = |line: &str| line.starts_with("# [") || line.contains(" = ");
        let lines = text[at..].lines().filter(|line| is_of_config(line));
        let lines: String = lines.map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect();
        let config = Config::parse(&format!("{}{lines}", &text[..at]), Path::new("config.toml"));
        let config = config.unwrap_or_else(|faults| panic!("{faults}"));
        assert!(config.inference.is_some());
        assert_eq!(config.deliveries.len(), 1);
    }

    #[test]
    fn the_commented_policy_is_right_once_its_marks_are_taken_out() {
        assert_eq!(BillingPolicy::parse(BILLING_TEXT).unwrap(), BillingPolicy::default());
        let lines = BILLING_TEXT.lines().skip(2);
        let text: String = lines.map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(""))).collect();
        let policy = BillingPolicy::parse(&text).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!((policy.efficiency.tiers.len(), policy.used_basis.len(), policy.accounts.len()), (1, 1, 1));
    }

    #[test]
    fn the_commented_price_book_is_right_once_its_marks_are_taken_out() {
        let text: String = prices_text(Zone::parse("Asia/Shanghai").unwrap())
            .lines()
            .skip(2)
            .take_while(|line| !line.contains("cardhour doctor"))
            .map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or("")))
            .collect();
        let book = PriceBook::parse(&text).unwrap().expect("it says something");
        assert_eq!(book.currency().code(), "CNY");
        assert_eq!(book.prices().len(), 2);
        assert_eq!(book.windows().len(), 1);
    }
}
