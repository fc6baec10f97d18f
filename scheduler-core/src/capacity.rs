//! What the pool needs, said from its past: more cards, fewer, other shares, other quotas. Advice, never an act.
//!
//! | question | where |
//! |---|---|
//! | buy cards, use them better, or wait? | [`advise_pool`]: use and queueing over thirty days, with two thresholds and a dwell |
//! | what does a pool of this size need at all? | [`needs_of_size`] |
//! | which sharing mode suits a job? | [`mode_for`]: compute and memory apart |
//! | how large should a team's quota be? | [`size_quota`] from its history, [`fit_to_pool`] for all teams together |
//! | do a job's cards wait for data? | [`waits_for_data`] |
//! | will a month's card-hours last? | [`MonthBucket`]: forecast, three bands, and what a band changes |
//!
//! A month that runs out of card-hours changes weight, borrowing and hours of new work. It never ends running work: [`BandEffect`] has no way to
//! say so.
//!
//! Each answer has the figures that it rests on. What wasn't seen isn't guessed: too little of it, and there is no answer. Does not: read the
//! books, know prices, change a quota.

mod input_bound;
mod mode_fit;
mod month_bucket;
mod pool_advice;
mod pool_size;
mod quantile;
mod team_quota;

pub use input_bound::{DataWait, InputFigures, Source, waits_for_data};
pub use mode_fit::{ModeAdvice, ModeFigures, ModeReason, mode_for};
pub use month_bucket::{Band, BandEffect, BucketFigures, BucketPolicy, BucketStanding, MonthBucket};
pub use pool_advice::{
    Advice, AdvicePolicy, AdvicePolicyFault, AdviceState, JobWait, PoolAdvice, PoolFigures, PoolHistory, advise_pool,
};
pub use pool_size::{Need, PoolSize, needs_of_size};
pub use quantile::quantile;
pub use team_quota::{QuotaAdvice, fit_to_pool, size_quota};
