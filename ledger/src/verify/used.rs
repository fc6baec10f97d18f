//! What usage says of how held time was used, held against what nodes told of it: by bounds that a settled timeline can't pass.
//!
//! It doesn't settle timelines again. Whatever source counts and however ticks meet, no more was seen of a device in a bucket than its samples
//! cover, no more of it was busy than the busiest of them says, and no more energy was drawn than all of them count. What of an
//! attempt that failed was seen is lost, to the millisecond, and of the others nothing is.

use super::findings::{Findings, time_text};
use super::load::Stored;
use crate::columns::Rows as Columns;
use crate::tables::usage::USAGE;
use crate::{Error, Reading};
use arrow::array::{Array, Decimal128Array};
use arrow::record_batch::RecordBatch;
use cardhour_books::split::loses_work;
use cardhour_domain::columns::Rows;
use cardhour_domain::{CardShare, CardState, Name, Percent, Sample, Stream, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// What was found.
pub(super) struct Used {
    pub seen: Findings,
    pub lost: Findings,
    pub energy: Findings,
}

/// A quarter hour. Unit: milliseconds.
const BUCKET_MS: i64 = 900_000;
/// Ticks that all but meet are let meet: a sample may speak for this part of its length more.
const JITTER: i64 = 20;

/// What samples can tell of one device in one bucket, at most.
#[derive(Clone, Copy, Default)]
struct Most {
    seen_ms: i64,
    /// Thousandths of a percent × milliseconds.
    busy: i128,
}

/// What usage has of one device in one bucket.
#[derive(Default)]
struct Said {
    seen: i128,
    effective: i128,
    /// The most cards that were held of it at once: of no more was anything seen.
    parts: i64,
}

/// None where nodes told nothing of what devices did.
pub(super) async fn check(stored: &Stored, reading: &Reading) -> Result<Option<Used>, Error> {
    let Some(samples) = reading.facts.told(Stream::Samples).filter(|samples| !samples.files.is_empty()) else {
        return Ok(None);
    };
    let told: Vec<i32> = samples.files.iter().filter_map(|file| file.day).collect();
    let mut used = Used { seen: Findings::of_time(), lost: Findings::of_time(), energy: Findings::default() };
    let days: BTreeSet<i32> = reading.usage.files.iter().filter_map(|file| file.day).collect();
    for day in days {
        // A tick belongs to the day of its start, and may reach over midnight.
        let near = [day - 1, day].into_iter().filter(|day| told.contains(day)).collect::<Vec<_>>();
        let mut of_day: Vec<Sample> = Vec::new();
        for rows in reading.facts.rows(Stream::Samples, |day| near.contains(&day)).await? {
            let Rows::Samples(rows) = rows else { unreachable!("rows are of one stream") };
            of_day.extend(rows);
        }
        let files = reading.usage.files.iter().filter(|file| file.day == Some(day)).cloned().collect();
        let read = reading.usage.read_with(files, None, &["attempt_key", "state", "device_uuid"], Ok).await?;
        let batches: Vec<RecordBatch> = read.into_iter().flat_map(|(_, batches)| batches).collect();
        check_day(stored, day, &of_day, &batches, &mut used)?;
    }
    Ok(Some(used))
}

fn check_day(
    stored: &Stored,
    day: i32,
    samples: &[Sample],
    batches: &[RecordBatch],
    used: &mut Used,
) -> Result<(), Error> {
    let start = Timestamp::from_utc_day(day).unix_ms();
    let mut said: HashMap<(Name, i64), Said> = HashMap::new();
    let mut energy_mj: i128 = 0;
    for batch in batches {
        let rows = Columns::new(USAGE.name, batch);
        let [keys, states, devices] = ["attempt_key", "state", "device_uuid"].map(|name| rows.indexed(name));
        let (keys, states, devices) = (keys?, states?, devices?);
        let buckets = rows.instants("bucket_start")?;
        let shares = rows.long("share_parts")?;
        let energy = rows.long("energy_mj")?;
        let [time, unseen, lost, idle, effective, underused] =
            ["card_time", "unseen", "lost", "idle", "effective", "underused"].map(|name| rows.decimals(name));
        let (time, unseen, lost, rest) = (time?, unseen?, lost?, [idle?, effective?, underused?]);
        let of = |array: &Decimal128Array, row: usize| if array.is_valid(row) { array.value(row) } else { 0 };
        for row in 0..batch.num_rows() {
            if energy.is_valid(row) {
                energy_mj += i128::from(energy.value(row));
            }
            let text = |(indexes, values): (&arrow::array::Int32Array, &arrow::array::StringArray)| {
                indexes.is_valid(row).then(|| values.value(indexes.value(row) as usize).to_owned())
            };
            if text(states).as_deref() != Some(CardState::Held.name()) {
                continue;
            }
            let bucket = Timestamp::from_unix_us(buckets.value(row)).unix_ms();
            let key = text(keys).unwrap_or_default();
            let seen = time.value(row) - of(unseen, row);
            used.lost.saw(of(lost, row));
            let loses = stored.by_key.get(&*key).is_some_and(|job| loses_work(stored.jobs[*job as usize].state));
            let expected = if loses { seen } else { 0 };
            if of(lost, row) != expected {
                let place = format!("attempt {key}, bucket {}", Timestamp::from_unix_ms(bucket));
                used.lost.fault(
                    "usage",
                    &place,
                    &format!("lost of {}", time_text(expected)),
                    &time_text(of(lost, row)),
                );
            }
            let Some(device) = text(devices).filter(|_| seen > 0) else { continue };
            let known = said.entry((device.as_str().into(), bucket)).or_default();
            known.seen += seen;
            // What is lost was busy, too, as far as it was.
            known.effective += of(rest[1], row);
            known.parts += if shares.is_valid(row) { shares.value(row) } else { 0 };
        }
    }
    let most = most(samples, start);
    for ((device, bucket), said) in said {
        let place = || format!("device {device}, bucket {}", Timestamp::from_unix_ms(bucket));
        let index = usize::try_from((bucket - start) / BUCKET_MS).unwrap_or(usize::MAX);
        let most = most.get(&device).and_then(|buckets| buckets.get(index)).copied().unwrap_or_default();
        used.seen.saw(said.seen);
        let most_seen = i128::from(said.parts) * i128::from(most.seen_ms);
        if said.seen > most_seen {
            let expected = format!("at most {} seen", time_text(most_seen));
            used.seen.fault("usage", &place(), &expected, &time_text(said.seen));
        }
        let whole = i128::from(Percent::WHOLE.thousandths());
        let most_busy = i128::from(CardShare::PARTS_PER_CARD) * most.busy / whole;
        if said.effective > most_busy {
            let expected = format!("at most {} busy", time_text(most_busy));
            used.seen.fault("usage", &place(), &expected, &time_text(said.effective));
        }
    }
    let most_mj = most_energy(samples, day);
    used.energy.rows += 1;
    if energy_mj > most_mj {
        let place = format!("day {}", Timestamp::from_utc_day(day));
        used.energy.fault("usage", &place, &format!("at most {most_mj} mJ"), &format!("{energy_mj} mJ"));
    }
    Ok(())
}

/// By device and bucket of the day, from all samples of it, whatever their source.
fn most(samples: &[Sample], start: i64) -> HashMap<Name, Vec<Most>> {
    let mut by_device: HashMap<&Name, Vec<(i64, i64, i64)>> = HashMap::new();
    for sample in samples {
        if let Some(busy) = sample.sm_active_pct.seen() {
            let (from, to) = (sample.during.start().unix_ms(), sample.during.end().unix_ms());
            let stretch = (from, to + (to - from) / JITTER + 1, i64::from(busy.thousandths()));
            by_device.entry(&sample.device_uuid).or_default().push(stretch);
        }
    }
    let day = |mut stretches: Vec<(i64, i64, i64)>| {
        stretches.sort_unstable();
        let mut cuts: Vec<i64> = stretches.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        cuts.extend((0..=96).map(|bucket| start + bucket * BUCKET_MS));
        cuts.sort_unstable();
        cuts.dedup();
        let mut buckets = vec![Most::default(); 96];
        // Stretches that have begun and not ended.
        let (mut next, mut open): (usize, Vec<(i64, i64)>) = (0, Vec::new());
        for pair in cuts.windows(2) {
            while let Some((_, to, busy)) = stretches.get(next).filter(|(from, ..)| *from <= pair[0]) {
                open.push((*to, *busy));
                next += 1;
            }
            open.retain(|(to, _)| *to > pair[0]);
            let Some(busiest) = open.iter().map(|(_, busy)| *busy).max() else { continue };
            let Some(bucket) =
                usize::try_from((pair[0] - start).div_euclid(BUCKET_MS)).ok().and_then(|i| buckets.get_mut(i))
            else {
                continue;
            };
            let length = pair[1] - pair[0];
            bucket.seen_ms += length;
            bucket.busy += i128::from(busiest) * i128::from(length);
        }
        buckets
    };
    by_device.into_iter().map(|(device, stretches)| (device.clone(), day(stretches))).collect()
}

/// The energy of all samples that touch the day: two sources of one card count it twice, so that it is never too little.
fn most_energy(samples: &[Sample], day: i32) -> i128 {
    let [start, end] = [day, day + 1].map(Timestamp::from_utc_day);
    let touching = samples.iter().filter(|sample| sample.during.end() > start && sample.during.start() < end);
    touching.filter_map(|sample| sample.energy_mj.seen()).map(|energy| i128::from(energy.0)).sum()
}
