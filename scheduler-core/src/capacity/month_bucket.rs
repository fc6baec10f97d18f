//! A month's card-hours: will they last, and what changes when they won't.
//!
//! Each node of the quota's tree may have a bucket of card-hours a month. What it will have used at the month's end is forecast from what it has
//! used and from its pace of late. Three bands follow, and each band changes three things for *new* work: the weight, how much may be borrowed,
//! and whether it runs off-peak only. Running work is never ended for a budget: [`BandEffect`] can't say so.
//!
//! Bands change late and by two thresholds, so that a team on the line isn't pushed to and fro; the first instant of a month starts anew.

use cardhour_domain::{CardTime, Interval, Timestamp};

/// How a month's bucket stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Band {
    /// It will last.
    Ample,
    /// It will run out just about at the end.
    Tight,
    /// It will run out before, or has.
    Over,
}

/// What a band changes for new work. Unit of factors: per mille.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandEffect {
    /// Of the weight.
    pub weight_per_mille: u32,
    /// Of the borrow limit.
    pub borrow_per_mille: u32,
    /// Whether new work starts in off-peak windows only.
    pub off_peak_only: bool,
}

/// The thresholds and times. Unit of thresholds: per mille of the bucket, of what is forecast for the month's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketPolicy {
    /// Tight from here.
    pub tight_from: u32,
    /// Ample again under this.
    pub tight_to: u32,
    /// Over from here.
    pub over_from: u32,
    /// Tight again under this.
    pub over_to: u32,
    /// How long a worse band must be forecast before it is in force. Unit: milliseconds.
    pub harder_after_ms: i64,
    /// The same for a better one. Unit: milliseconds.
    pub softer_after_ms: i64,
    /// With a shorter past than this there is no forecast. Unit: milliseconds.
    pub least_past_ms: i64,
    /// What each band changes.
    pub effects: [BandEffect; 3],
}

/// What is known of a month so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketFigures {
    /// The month.
    pub month: Interval,
    /// The instant these are of.
    pub at: Timestamp,
    /// What it may use.
    pub budget: CardTime,
    /// What it has used since the month began.
    pub used: CardTime,
    /// What it used of late, and over how long, also before the month began: its pace. None where that isn't known.
    pub of_late: Option<(CardTime, i64)>,
}

/// What is remembered of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthBucket {
    /// The month it is of.
    month: Interval,
    band: Band,
    /// A band that is forecast, and since when.
    candidate: Option<(Band, Timestamp)>,
}

/// How a bucket stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketStanding {
    /// Its band.
    pub band: Band,
    /// What that changes.
    pub effect: BandEffect,
    /// What it will have used at the month's end; none where there is no past to tell from.
    pub forecast: Option<CardTime>,
    /// When it will be empty, at the pace of late; none when it lasts to the month's end.
    pub empty_at: Option<Timestamp>,
}

impl Default for BucketPolicy {
    fn default() -> Self {
        const HOUR: i64 = 3_600_000;
        let effect = |weight_per_mille, borrow_per_mille, off_peak_only| BandEffect {
            weight_per_mille,
            borrow_per_mille,
            off_peak_only,
        };
        Self {
            tight_from: 1000,
            tight_to: 950,
            over_from: 1200,
            over_to: 1100,
            harder_after_ms: 6 * HOUR,
            softer_after_ms: 24 * HOUR,
            least_past_ms: 24 * HOUR,
            effects: [effect(1000, 1000, false), effect(700, 500, false), effect(300, 0, true)],
        }
    }
}

impl Band {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ample => "ample",
            Self::Tight => "tight",
            Self::Over => "over",
        }
    }
}

impl BucketPolicy {
    /// What is wrong with it; none when nothing is.
    pub fn fault(&self) -> Option<&'static str> {
        let thresholds = [self.tight_to, self.tight_from, self.over_to, self.over_from];
        if self.tight_to >= self.tight_from || self.over_to >= self.over_from {
            Some("a band must end below where it begins")
        } else if thresholds[1] > thresholds[3] {
            Some("over must begin above tight")
        } else if self.harder_after_ms <= 0 || self.softer_after_ms <= 0 {
            Some("a band must be forecast for a while before it is in force")
        } else {
            None
        }
    }

    const fn effect(&self, band: Band) -> BandEffect {
        self.effects[band as usize]
    }
}

impl MonthBucket {
    /// A month that begins.
    pub const fn new(month: Interval) -> Self {
        Self { month, band: Band::Ample, candidate: None }
    }

    /// The band in force.
    pub const fn band(&self) -> Band {
        self.band
    }

    /// How it stands now, and what to remember.
    ///
    /// What is empty is over at once: that isn't a forecast. A new month starts ample, whatever the old one was.
    pub fn step(self, figures: &BucketFigures, policy: &BucketPolicy) -> (Self, BucketStanding) {
        let mut next = if self.month == figures.month { self } else { Self::new(figures.month) };
        let forecast = forecast(figures, policy);
        let is_empty = figures.used >= figures.budget && !figures.used.is_zero();
        if is_empty {
            (next.band, next.candidate) = (Band::Over, None);
        } else if let Some(forecast) = forecast {
            next.turn_to(spoken_for(next.band, forecast, figures.budget, policy), figures.at, policy);
        } else {
            next.candidate = None;
        }
        let standing = BucketStanding {
            band: next.band,
            effect: policy.effect(next.band),
            forecast,
            empty_at: if is_empty { Some(figures.at) } else { empty_at(figures, policy) },
        };
        (next, standing)
    }

    fn turn_to(&mut self, band: Band, at: Timestamp, policy: &BucketPolicy) {
        if band == self.band {
            self.candidate = None;
            return;
        }
        // Of all that was forecast since then, in one direction, the nearest: further ones have to hold for as long by themselves.
        let (band, since) = match self.candidate {
            Some((candidate, since)) if candidate > self.band && band > self.band => (candidate.min(band), since),
            Some((candidate, since)) if candidate < self.band && band < self.band => (candidate.max(band), since),
            Some(_) | None => (band, at),
        };
        let dwell_ms = if band > self.band { policy.harder_after_ms } else { policy.softer_after_ms };
        if at.ms_since(since) >= dwell_ms {
            (self.band, self.candidate) = (band, None);
        } else {
            self.candidate = Some((band, since));
        }
    }
}

/// The band that a forecast speaks for, from the one in force.
fn spoken_for(now: Band, forecast: CardTime, budget: CardTime, policy: &BucketPolicy) -> Band {
    let is_from = |per_mille: u32| {
        forecast.part_ms().saturating_mul(1000) >= budget.part_ms().saturating_mul(i128::from(per_mille))
    };
    let over = match now {
        Band::Over => policy.over_to,
        Band::Ample | Band::Tight => policy.over_from,
    };
    let tight = match now {
        Band::Tight | Band::Over => policy.tight_to,
        Band::Ample => policy.tight_from,
    };
    if is_from(over) {
        Band::Over
    } else if is_from(tight) {
        Band::Tight
    } else {
        Band::Ample
    }
}

/// The pace to go on with: card-time over milliseconds. That of late where it is known, else the month's own.
fn pace(figures: &BucketFigures, policy: &BucketPolicy) -> Option<(i128, i128)> {
    let (used, over_ms) = figures.of_late.unwrap_or((figures.used, figures.at.ms_since(figures.month.start())));
    (over_ms >= policy.least_past_ms && over_ms > 0).then(|| (used.part_ms(), i128::from(over_ms)))
}

/// What has been used, and the pace over what is left. Rounded down to the part × millisecond.
fn forecast(figures: &BucketFigures, policy: &BucketPolicy) -> Option<CardTime> {
    let (used, over_ms) = pace(figures, policy)?;
    let left_ms = figures.month.end().ms_since(figures.at).max(0);
    Some(figures.used + CardTime::from_part_ms(used * i128::from(left_ms) / over_ms))
}

/// When what is left is used, at the pace; none when that is not in this month.
fn empty_at(figures: &BucketFigures, policy: &BucketPolicy) -> Option<Timestamp> {
    let (used, over_ms) = pace(figures, policy)?;
    if used <= 0 {
        return None;
    }
    let left = figures.budget.part_ms() - figures.used.part_ms();
    let ms = i64::try_from(left.max(0) * over_ms / used).ok()?;
    figures.at.checked_add_ms(ms).filter(|at| *at < figures.month.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_unix_ms(hour * HOUR)
    }

    fn card_hours(hours: i64) -> CardTime {
        CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * i128::from(hours))
    }

    /// A month of thirty days, 720 hours, and a bucket of 7,200 card-hours: ten cards throughout.
    fn month() -> Interval {
        Interval::new(at(0), at(720)).unwrap()
    }

    /// After so many hours, with so many cards busy from the first of them, also of late.
    fn figures(hour: i64, cards: i64) -> BucketFigures {
        BucketFigures {
            month: month(),
            at: at(hour),
            budget: card_hours(7_200),
            used: card_hours(hour * cards),
            of_late: Some((card_hours(cards * 24 * 7), 7 * DAY)),
        }
    }

    /// An hour each, with so many cards: the band in force at the end of each stretch.
    fn bands(stretches: &[(i64, i64)]) -> Vec<&'static str> {
        let policy = BucketPolicy::default();
        let mut bucket = MonthBucket::new(month());
        let (mut hour, mut used) = (0, 0);
        let mut said = Vec::new();
        for (cards, hours) in stretches {
            for _ in 0..*hours {
                hour += 1;
                used += cards;
                let figures = BucketFigures { used: card_hours(used), ..figures(hour, *cards) };
                bucket = bucket.step(&figures, &policy).0;
            }
            said.push(bucket.band().name());
        }
        said
    }

    /// 100 hours with 9 cards are 900; 620 more are 5,580: 6,480 in all.
    #[test]
    fn the_forecast_is_what_was_used_and_the_pace_of_late() {
        let policy = BucketPolicy::default();
        let (_, standing) = MonthBucket::new(month()).step(&figures(100, 9), &policy);
        assert_eq!(standing.forecast, Some(card_hours(6_480)));
        assert_eq!(standing.empty_at, None);
        // 20 cards: 2,000, and 5,200 left last for 260 hours.
        let (_, standing) = MonthBucket::new(month()).step(&figures(100, 20), &policy);
        assert_eq!((standing.forecast, standing.empty_at), (Some(card_hours(14_400)), Some(at(360))));
        // Without a pace of late the month's own, once a day of it is over.
        let alone = |hour| BucketFigures { of_late: None, ..figures(hour, 9) };
        assert_eq!(MonthBucket::new(month()).step(&alone(23), &policy).1.forecast, None);
        assert_eq!(MonthBucket::new(month()).step(&alone(24), &policy).1.forecast, Some(card_hours(6_480)));
    }

    #[test]
    fn a_band_hardens_after_six_hours_and_softens_after_a_day() {
        assert_eq!(bands(&[(11, 6)]), ["ample"]);
        assert_eq!(bands(&[(11, 7)]), ["tight"]);
        assert_eq!(bands(&[(13, 7)]), ["over"]);
        assert_eq!(bands(&[(11, 7), (2, 24), (2, 1)]), ["tight", "tight", "ample"]);
        // Six hours that began tight and ended over: tight first, and over when it has lasted as long.
        assert_eq!(bands(&[(11, 4), (13, 3), (13, 7)]), ["ample", "tight", "over"]);
        assert_eq!(bands(&[(11, 4), (9, 1), (11, 6)]), ["ample", "ample", "ample"]);
    }

    /// Tight begins at 1,000 per mille and ends under 950; over begins at 1,200 and ends under 1,100. With n cards throughout it is n × 100.
    #[test]
    fn between_two_thresholds_a_band_stays_what_it_is() {
        let policy = BucketPolicy::default();
        let forecast = |per_mille: i64| card_hours(72 * per_mille / 10);
        let budget = card_hours(7_200);
        for (now, per_mille, then) in [
            (Band::Ample, 999, Band::Ample),
            (Band::Ample, 1000, Band::Tight),
            (Band::Tight, 960, Band::Tight),
            (Band::Tight, 940, Band::Ample),
            (Band::Tight, 1190, Band::Tight),
            (Band::Tight, 1200, Band::Over),
            (Band::Over, 1110, Band::Over),
            (Band::Over, 1090, Band::Tight),
            (Band::Over, 900, Band::Ample),
        ] {
            assert_eq!(spoken_for(now, forecast(per_mille), budget, &policy), then, "{now:?} at {per_mille}");
        }
    }

    #[test]
    fn an_empty_bucket_is_over_at_once_and_a_new_month_is_ample() {
        let policy = BucketPolicy::default();
        let (bucket, standing) = MonthBucket::new(month()).step(&figures(400, 18), &policy);
        assert_eq!((standing.band, standing.empty_at), (Band::Over, Some(at(400))));
        assert_eq!(standing.effect, BandEffect { weight_per_mille: 300, borrow_per_mille: 0, off_peak_only: true });
        let april = Interval::new(at(720), at(1440)).unwrap();
        let figures = BucketFigures { month: april, at: at(721), used: CardTime::ZERO, ..figures(721, 18) };
        let (_, standing) = bucket.step(&figures, &policy);
        assert_eq!((standing.band, standing.effect.weight_per_mille), (Band::Ample, 1000));
    }

    #[test]
    fn a_policy_whose_bands_meet_is_refused() {
        assert_eq!(BucketPolicy::default().fault(), None);
        assert!(BucketPolicy { tight_to: 1000, ..BucketPolicy::default() }.fault().is_some());
        assert!(BucketPolicy { over_from: 900, over_to: 800, ..BucketPolicy::default() }.fault().is_some());
        assert!(BucketPolicy { softer_after_ms: 0, ..BucketPolicy::default() }.fault().is_some());
    }

    proptest! {
        /// Whatever the pace, a band doesn't go and come back within a day.
        #[test]
        fn a_band_does_not_flap(paces in prop::collection::vec(0i64..16, 600)) {
            let policy = BucketPolicy::default();
            let mut bucket = MonthBucket::new(month());
            let mut hardened_at = None;
            let mut used = 0;
            for (hour, cards) in (1..).zip(paces) {
                used += cards;
                let before = bucket.band();
                let figures = BucketFigures { used: card_hours(used), ..figures(hour, cards) };
                bucket = bucket.step(&figures, &policy).0;
                if bucket.band() > before {
                    hardened_at = Some(hour);
                }
                if bucket.band() < before {
                    prop_assert!(hardened_at.is_none_or(|at| hour - at >= 24), "hardened at {:?}, softened at {}", hardened_at, hour);
                }
            }
        }
    }
}
