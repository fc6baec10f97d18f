//! `import metrics`: telemetry that was recorded before, from files or from a running Prometheus.
//!
//! Reading is `cardhour_books`' own; this file opens files or asks, and hands all that came to the ledger as one import: what a source says of an
//! instant depends on the instant before, which may stand in another file.

use super::prometheus::Prometheus;
use super::source::{self, Source};
use super::{Tally, read_map, warn_of};
use crate::books::Books;
use crate::cli::{MetricsArgs, MetricsFormat, TableSource};
use crate::error::Error;
use crate::request::RequestError;
use crate::terminal::{Progress, Unit, tell};
use cardhour_books::attempt::Rejected;
use cardhour_books::import::map::MapFile;
use cardhour_books::import::metrics::prometheus::{Answers, Query, queries, ranges};
use cardhour_books::import::metrics::scrape::{Scrape, read_each};
use cardhour_books::import::metrics::table::SERIES_FIELDS;
use cardhour_books::import::metrics::{MetricsError, Readout, Setting, Telemetry, cards, smi_log, smi_xml, table};
use cardhour_books::import::readers::Format;
use cardhour_books::import::when::check_past;
use cardhour_domain::{Interval, Name, SampleSource, Timestamp, Zone};
use futures::StreamExt;
use std::collections::BTreeMap;

/// From one instant to the next where Prometheus is asked and nobody says. Unit: seconds.
const STEP_S: u32 = 60;

/// Steps before the first that are asked for too, so that it is carried over a silence, and its counters have something to compare with, just as if
/// the time before were imported with it.
const LEAD_STEPS: i64 = 3;

/// Points of a series in one answer: of a thousand cards a day of minutes is some 40 MB.
const POINTS: i64 = 1_440;

/// Questions that are out at the same time.
const AT_ONCE: usize = 4;

/// What was read, before it is put together.
#[derive(Default)]
struct Reading {
    readouts: Vec<Readout>,
    rejected: Vec<(String, Vec<Rejected>)>,
}

/// Books what the command names. Errors: a file that can't be read, a source that doesn't answer or refuses, the ledger's own.
pub async fn import_metrics(books: &Books, args: &MetricsArgs, now: Timestamp) -> Result<Tally, Error> {
    let format = format_of(args)?;
    let map = args.map.as_deref().map(|path| read_map(path, SERIES_FIELDS)).transpose()?;
    let mut setting = setting(args, map.as_ref(), books.zone(), now)?;
    let name = match (&args.url, &args.files[..]) {
        (Some(url), _) => url.clone(),
        (None, [one]) => source::name(one),
        (None, files) => format!("{} files", files.len()),
    };
    let reading = match format {
        MetricsFormat::Prometheus => asked(args, &mut setting, books.zone(), now).await?,
        _ => {
            if matches!(format, MetricsFormat::NvidiaSmiCsv | MetricsFormat::NvidiaSmiXml) && args.zone.is_none() {
                tell(&format!(
                    "note: times of nvidia-smi carry no zone and are read in {}, the ledger's: --zone says another",
                    setting.zone
                ));
            }
            read_files(args, format, map, &setting)?
        }
    };
    let rows: usize = reading.readouts.iter().map(|readout| readout.looks.len()).sum();
    let rejected: usize = reading.rejected.iter().map(|(_, rows)| rows.len()).sum();
    for (file, rejected) in &reading.rejected {
        warn_of(file, rejected);
    }
    let told = tokio::task::spawn_blocking(move || Telemetry::of(reading.readouts, &setting));
    let told = told.await.expect("readings are put together without a panic");
    for note in &told.notes {
        tell(&format!("note: {note}"));
    }
    let mut progress = Progress::new(&format!("booking {name}"), 0, Unit::Items);
    let booked = progress.during(books.ledger().import_telemetry(told, reading.rejected)).await?;
    Ok(Tally { read: (rows + rejected) as u64, steps: 0, booked })
}

/// How the source is written: as said, else as an address, the map or the file's name says. Errors: nothing says.
fn format_of(args: &MetricsArgs) -> Result<MetricsFormat, Error> {
    let of_name = |path: &std::path::PathBuf| match path.extension()?.to_str()? {
        "prom" => Some(MetricsFormat::DcgmText),
        "xml" => Some(MetricsFormat::NvidiaSmiXml),
        "jsonl" if args.map.is_some() => Some(MetricsFormat::Jsonl),
        _ => None,
    };
    let said = args.format.or_else(|| args.url.as_ref().map(|_| MetricsFormat::Prometheus));
    let format =
        said.or_else(|| args.files.first().and_then(of_name)).or(args.map.as_ref().map(|_| MetricsFormat::Csv));
    let wrong = |what: &str| Err(RequestError::Metrics(what.to_owned()).into());
    match (format, &args.url, args.files.is_empty()) {
        (None, ..) => wrong(
            "nothing says how the file is written: add --format nvidia-smi-csv, nvidia-smi-xml, dcgm-text, csv or jsonl",
        ),
        (Some(MetricsFormat::Prometheus), None, _) => wrong("which Prometheus? --url http://HOST:9090 says it"),
        (Some(MetricsFormat::Prometheus), _, false) => {
            wrong("a running Prometheus is asked, no file is read: leave one of them out")
        }
        (Some(MetricsFormat::Prometheus), ..) => Ok(MetricsFormat::Prometheus),
        (Some(_), Some(_), _) => wrong("--url is for --format prometheus"),
        (Some(_), None, true) => wrong("which files?"),
        (Some(format), ..) => Ok(format),
    }
}

fn setting(args: &MetricsArgs, map: Option<&MapFile>, zone: Zone, now: Timestamp) -> Result<Setting, Error> {
    let cluster = args.cluster.clone().or_else(|| map.and_then(|map| map.cluster.clone())).unwrap_or_default();
    let mut known: BTreeMap<String, Name> = BTreeMap::new();
    for path in &args.cards {
        let source = Source::read(path)?;
        let list = source.content(Format::Csv)?;
        let list = cards::read(list.bytes())
            .map_err(|error| Error::Cards { file: source.name.clone(), source: Box::new(error) })?;
        known.extend(list);
    }
    Ok(Setting {
        node: args.node.as_deref().map(Name::from),
        zone: args.zone.unwrap_or(zone),
        cards: known,
        step_ms: args.step.map(|step| i64::from(step.0) * 1000),
        pod_labels: args.pod_labels.iter().map(|label| label_of(label)).collect(),
        now: Some(now),
        ..Setting::of_cluster(cluster.as_str())
    })
}

/// A pod's label as kube-state-metrics names it.
fn label_of(label: &str) -> String {
    if label.starts_with("label_") {
        return label.to_owned();
    }
    let plain = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("label_{}", plain.collect::<String>())
}

fn read_files(
    args: &MetricsArgs,
    format: MetricsFormat,
    map: Option<MapFile>,
    setting: &Setting,
) -> Result<Reading, Error> {
    let failed = |file: &str, error| Error::Metrics { file: file.to_owned(), source: Box::new(error) };
    let mut sources = Vec::new();
    for path in &args.files {
        sources.push(Source::read(path)?);
    }
    let mut reading = Reading::default();
    if format == MetricsFormat::DcgmText {
        let at = args.at.map(|at| at.instant(setting.zone));
        if let Some(at) = at {
            if sources.len() > 1 {
                let what = "--at is when one text was scraped, and there are several: import those without timestamps one by one";
                return Err(RequestError::Metrics(what.to_owned()).into());
            }
            if check_past("at", at, setting.now.unwrap_or(at)).is_err() {
                return Err(RequestError::AsOf(at).into());
            }
        }
        let texts = sources.iter().map(|source| source.content(Format::Csv)).collect::<Result<Vec<_>, _>>()?;
        let scrapes: Vec<Scrape> = texts.iter().map(|text| Scrape { text: text.bytes(), at }).collect();
        let (readout, rejected) = read_each(&scrapes, setting).map_err(|error| {
            let file = if let MetricsError::NoTime { scrape, .. } = error { scrape } else { 0 };
            failed(&sources[file].name, error)
        })?;
        reading.readouts.push(readout);
        reading.rejected = sources.into_iter().map(|source| source.name).zip(rejected).collect();
        return Ok(reading);
    }
    let mut map = map.unwrap_or_default();
    if let Some(zone) = args.zone {
        map.time_zone = zone;
    }
    map.format = match format {
        MetricsFormat::Jsonl => Some(Format::Jsonl),
        _ => Some(Format::Csv),
    };
    let of_table = match args.source {
        TableSource::Dcgm => SampleSource::Dcgm,
        TableSource::NvidiaSmi => SampleSource::NvidiaSmi,
    };
    let fields = args.fields.clone().or_else(|| map.fields.clone());
    for source in &sources {
        let content = source.content(Format::Csv)?;
        let mut progress =
            Progress::new(&format!("reading {}", source.name), content.bytes().len() as u64, Unit::Bytes);
        let read = match format {
            MetricsFormat::NvidiaSmiCsv => smi_log::read(content.bytes(), fields.as_deref(), setting),
            MetricsFormat::NvidiaSmiXml => smi_xml::read(content.bytes(), setting),
            _ => table::read(content.bytes(), &map, of_table, setting),
        };
        let mut readout = read.map_err(|error| failed(&source.name, error))?;
        progress.at(content.bytes().len() as u64);
        reading.rejected.push((source.name.clone(), std::mem::take(&mut readout.rejected)));
        reading.readouts.push(readout);
    }
    Ok(reading)
}

/// What a running Prometheus tells of the time that is asked for.
async fn asked(args: &MetricsArgs, setting: &mut Setting, zone: Zone, now: Timestamp) -> Result<Reading, Error> {
    let wrong = |what: &str| Error::from(RequestError::Metrics(what.to_owned()));
    let from = args.from.ok_or_else(|| wrong("from when on? --from says it"))?;
    let to = args.to.map_or(now, |to| to.instant(args.zone.unwrap_or(zone))).min(now);
    let during = Interval::new(from.instant(args.zone.unwrap_or(zone)), to)
        .ok_or_else(|| wrong("nothing lies between --from and --to, or all of it is yet to come"))?;
    let step_s = args.step.map_or(STEP_S, |step| step.0);
    let step_ms = i64::from(step_s) * 1000;
    setting.step_ms = Some(step_ms);
    let first =
        during.start().unix_ms().div_euclid(step_ms) + i64::from(during.start().unix_ms().rem_euclid(step_ms) != 0);
    setting.after = Some(Timestamp::from_unix_ms(first * step_ms));
    if ranges(during, step_s, POINTS).is_empty() {
        return Err(wrong("no whole step lies between --from and --to: take more time, or a smaller --step"));
    }
    let lead = Timestamp::from_unix_ms((first - LEAD_STEPS - 1) * step_ms);
    let asked = Interval::new(lead, during.end()).expect("it begins before what is asked for");
    let prometheus = Prometheus::of(args)?;
    let queries = queries(step_s, args.matchers.as_deref().unwrap_or_default());
    let ranges = ranges(asked, step_s, POINTS);
    let all = ranges.iter().flat_map(|range| queries.iter().map(move |query| (query, *range)));
    let mut progress = Progress::new("asking", (queries.len() * ranges.len()) as u64, Unit::Items);
    let mut answers = Answers::new(setting);
    let ask = |(query, (start, end))| {
        let (prometheus, query): (_, &Query) = (&prometheus, query);
        async move { prometheus.query_range(&query.expression, start, end, step_s).await.map(|answer| (query, answer)) }
    };
    let mut coming = futures::stream::iter(all.map(ask)).buffered(AT_ONCE);
    let failed =
        |error: MetricsError| Error::Metrics { file: prometheus.address().to_owned(), source: Box::new(error) };
    let mut count = 0;
    while let Some(answer) = coming.next().await {
        let (query, answer) = answer?;
        answers.add(query, &answer).map_err(failed)?;
        count += 1;
        progress.at(count);
    }
    drop(coming);
    let mut readout = answers.readout();
    let after = setting.after;
    readout.looks.sort_by_key(|look| look.at);
    if readout.looks.iter().all(|look| after.is_some_and(|after| look.at <= after)) {
        readout.notes.push("it has no metric of a card that is read here in that time".to_owned());
    }
    Ok(Reading { readouts: vec![readout], rejected: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_be_written_as_the_pod_has_it() {
        assert_eq!(label_of("team"), "label_team");
        assert_eq!(label_of("example.com/cost-center"), "label_example_com_cost_center");
        assert_eq!(label_of("label_team"), "label_team");
    }
}
