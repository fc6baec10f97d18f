//! `isolation-test`: holds the trials and prints what came of them. No ledger is opened.

use super::{Exit, print};
use crate::cli::IsolationTestArgs;
use crate::error::Error;
use crate::terminal::tell;
use crate::trial::{Bench, CardWatch, Held};
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_scheduler_core::sharing::trial::{Latency, Verdict};
use rust_decimal::Decimal;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Holds them one by one. What was started is ended, also by Ctrl-C and SIGTERM. Errors: no such card, no command, a victim that tells nothing.
pub(super) async fn run(args: &IsolationTestArgs) -> Result<Exit, Error> {
    let failed = |source| Error::Stream { doing: "listen for signals", source };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let held = tokio::select! {
        // Dropping the other ends what it started.
        _ = interrupt.recv() => return Err(interrupted()),
        _ = terminate.recv() => return Err(interrupted()),
        held = hold(args) => held?,
    };
    let is_passed = held.iter().all(|held| held.judged.verdict == Verdict::Passed);
    print::table(&table(args, &held), &args.output)?;
    Ok(if is_passed { Exit::Done } else { Exit::No })
}

fn interrupted() -> Error {
    Error::Stream { doing: "hold the trials", source: io::ErrorKind::Interrupted.into() }
}

async fn hold(args: &IsolationTestArgs) -> Result<Vec<Held>, Error> {
    let (asked, library) = (args.card.clone(), args.nvml_lib.clone());
    let looking = tokio::task::spawn_blocking(move || CardWatch::start(asked.as_deref(), library));
    let card = looking.await.expect("a look at a card ends or its fault is a defect of ours")?;
    let memory_mib = card.as_ref().and_then(CardWatch::memory_mib);
    let allowed_mib = args.allowed_mib.or_else(|| memory_mib.map(|memory| args.share.of(memory)));
    let allowed_mib = allowed_mib.filter(|mib| *mib > 0).ok_or_else(|| {
        Error::Trial("how much memory is the aggressor's? No card tells: --allowed-mib MIB says it".to_owned())
    })?;
    if card.is_none() {
        tell("no card is seen: what the commands say is all there is");
    }
    let bench = Bench {
        victim: args.victim.clone(),
        aggressor: args.aggressor.clone(),
        part: Duration::from_secs(args.part_s),
        limit: args.limit.0,
        allowed_mib,
        card,
    };
    let mut held = Vec::new();
    for trial in &args.trials {
        tell(&format!("{} …", trial.name()));
        held.push(bench.hold(*trial).await?);
    }
    Ok(held)
}

fn table(args: &IsolationTestArgs, held: &[Held]) -> Table {
    let columns = [
        ("trial", Kind::Text),
        ("verdict", Kind::Text),
        ("p50_ms_alone", Kind::Hours),
        ("p50_ms_beside", Kind::Hours),
        ("spread_alone", Kind::Ratio),
        ("spread_beside", Kind::Ratio),
        ("aggressor_peak_mib", Kind::Count),
        ("sm_active", Kind::Ratio),
        ("xids", Kind::Text),
        ("what", Kind::Text),
    ];
    let on = args.card.as_ref().map(|card| format!(", card {card}")).unwrap_or_default();
    Table {
        title: format!("isolation test{on}"),
        columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec(),
        rows: held.iter().map(row).collect(),
        total: None,
        notes: vec!["spread is (p95 − p50) ÷ p50 of the victim's latencies".to_owned()],
    }
}

fn row(held: &Held) -> Vec<Value> {
    let judged = &held.judged;
    // Six decimals, as all measures have.
    let decimal = |value: Option<i64>, scale: u32| {
        value.map_or(Value::Absent, |value| {
            let mut decimal = Decimal::new(value, scale);
            decimal.rescale(6);
            Value::Decimal(decimal)
        })
    };
    let median = |latency: Option<Latency>| decimal(latency.and_then(|latency| i64::try_from(latency.p50_us).ok()), 3);
    let spread =
        |latency: Option<Latency>| decimal(latency.and_then(|latency| i64::try_from(latency.spread()).ok()), 5);
    let beside = held.beside.as_ref();
    let xids: Vec<String> = beside.iter().flat_map(|glimpse| &glimpse.xids).map(u32::to_string).collect();
    vec![
        Value::Text(judged.trial.name().into()),
        Value::Text(judged.verdict.name().into()),
        median(judged.alone),
        median(judged.beside),
        spread(judged.alone),
        spread(judged.beside),
        beside.and_then(|glimpse| glimpse.peak_mib).map_or(Value::Absent, Value::Count),
        decimal(beside.and_then(|glimpse| glimpse.sm_active).map(|percent| percent.thousandths().into()), 5),
        if xids.is_empty() { Value::Absent } else { Value::Text(xids.join(", ").into()) },
        Value::Text(judged.words.as_str().into()),
    ]
}
