//! How a month's bucket of card-hours stands: its use by the books, stepped hour by hour through the bands of the scheduler core.
//!
//! Nothing is remembered between two looks. The machine is run again from the start of the month over what the books say of each hour, so that the band of a moment is the same
//! whoever asks, however often, and after a kill.

use cardhour_books::quotas::{Holder, MonthSpan, MonthUse, Quotas, UseCurve};
use cardhour_domain::{CardTime, Interval, Name, Timestamp};
use cardhour_scheduler_core::capacity::{BucketFigures, BucketPolicy, BucketStanding, MonthBucket};

/// Over how much time a pace is taken. Unit: milliseconds, seven days.
const PACE_MS: i64 = 7 * 24 * 3_600_000;
const HOUR_MS: i64 = 3_600_000;

/// A bucket, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonthStanding {
    /// Whose.
    pub holder: Holder,
    /// In which cluster; none where no cluster is known to have the model.
    pub cluster: Option<Name>,
    /// Of which model.
    pub model: Name,
    /// The month.
    pub month: Interval,
    /// What it may use.
    pub budget: CardTime,
    /// What it has used.
    pub used: CardTime,
    /// The band, what that changes, and where it will end.
    pub standing: BucketStanding,
}

impl MonthStanding {
    /// How it stands, in a sentence.
    pub fn words(&self) -> String {
        let Holder { org, project, user } = &self.holder;
        let owner: Vec<&str> =
            [Some(org), project.as_ref(), user.as_ref()].into_iter().flatten().map(|n| &**n).collect();
        format!(
            "{} has used {} of its {} card-hours of {} this month, and is {}",
            owner.join("/"),
            self.used.card_hours().normalize(),
            self.budget.card_hours().normalize(),
            self.model,
            self.standing.band.name(),
        )
    }
}

/// How the buckets of these uses stand, in their order; with the place of each among `uses`.
pub fn standings(
    quotas: &Quotas,
    uses: &[MonthUse],
    span: &MonthSpan,
    policy: &BucketPolicy,
) -> Vec<(usize, MonthStanding)> {
    let standing = |(place, of): (usize, &MonthUse)| {
        let quota = &quotas.quotas[of.quota];
        let cards = quota.cards.as_ref()?;
        let budget = cards.month?;
        let standing = MonthStanding {
            holder: quota.holder.clone(),
            cluster: of.cluster.clone(),
            model: cards.model.clone(),
            month: span.month,
            budget,
            used: of.used,
            standing: stepped(&of.curve, span.month, budget, policy),
        };
        Some((place, standing))
    };
    uses.iter().enumerate().filter_map(standing).collect()
}

/// The buckets of a month of which nothing is known yet, for clusters that are named: nothing is used.
pub fn fresh(quotas: &Quotas, clusters: &[Name], month: Interval, policy: &BucketPolicy) -> Vec<MonthStanding> {
    let of_quota = |quota: &cardhour_books::quotas::Quota| -> Option<Vec<MonthStanding>> {
        let cards = quota.cards.as_ref()?;
        let budget = cards.month?;
        let figures = BucketFigures { month, at: month.start(), budget, used: CardTime::ZERO, of_late: None };
        let (_, standing) = MonthBucket::new(month).step(&figures, policy);
        let of = |cluster: &Name| MonthStanding {
            holder: quota.holder.clone(),
            cluster: Some(cluster.clone()),
            model: cards.model.clone(),
            month,
            budget,
            used: CardTime::ZERO,
            standing,
        };
        let is_in = |cluster: &&Name| quota.cluster.as_ref().is_none_or(|own| own == *cluster);
        Some(clusters.iter().filter(is_in).map(of).collect())
    };
    quotas.quotas.iter().filter_map(of_quota).flatten().collect()
}

/// The machine, run over each hour of the month that the books speak of.
fn stepped(curve: &UseCurve, month: Interval, budget: CardTime, policy: &BucketPolicy) -> BucketStanding {
    let known = curve.during();
    let before = curve.used_by(month.start());
    let figures = |at: Timestamp| {
        // Back by whole hours from the hour that it is in, where the curve is exact.
        let hour_ms = at.ms_since(known.start()) / HOUR_MS * HOUR_MS;
        let from = Timestamp::from_unix_ms(known.start().unix_ms() + (hour_ms - PACE_MS).max(0));
        let of_late = (curve.used_by(at) - curve.used_by(from), at.ms_since(from));
        BucketFigures { month, at, budget, used: curve.used_by(at) - before, of_late: Some(of_late) }
    };
    let (mut bucket, mut standing) = MonthBucket::new(month).step(&figures(month.start()), policy);
    for at in curve.instants(month.start()) {
        (bucket, standing) = bucket.step(&figures(at), policy);
    }
    standing
}
