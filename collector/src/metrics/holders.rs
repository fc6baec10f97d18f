//! Who holds what, beside the devices' own series: a holder that comes or goes ends none of those.
//!
//! ```text
//! cardhour_device_sm_active_ratio * on (device_uuid) group_left (holder, project, user) cardhour_holder_info
//! ```
//! works where a device has one holder; a device that several share has a row of each, with its share where one is declared.

use super::About;
use super::devices::share;
use super::family::{Families, Family, Label, gauge};
use super::snapshot::{Holding, Snapshot};
use std::fmt;

const INFO: Family = gauge("cardhour_holder_info", "", "Who holds a device and who pays for it, by the site's rules");
const STARTED: Family = gauge(
    "cardhour_holder_start_time",
    "seconds",
    "When a holder started, since 1970; when the collector saw it first where nothing tells better",
);
const SHARE: Family =
    gauge("cardhour_holder_share", "ratio", "The declared share of the card; no series where none is declared");

/// Every family of holders.
pub fn write(families: &mut Families<'_>, snapshot: &Snapshot, about: &About) -> fmt::Result {
    let keys: Vec<Vec<Label<'_>>> = snapshot.holders.iter().map(|holding| key(holding, about)).collect();
    let infos: Vec<Vec<Label<'_>>> =
        snapshot.holders.iter().zip(&keys).map(|(holding, key)| info(holding, key)).collect();
    families.write(INFO, infos.iter().map(|labels| (&**labels, None, 1.0)))?;
    let held = || snapshot.holders.iter().zip(&keys);
    families.write(STARTED, held().map(|(h, key)| (&**key, None, h.started_at.unix_ms() as f64 / 1000.0)))?;
    families.write(SHARE, held().filter_map(|(h, key)| Some((&**key, None, share(h.share?)))))
}

fn key<'a>(holding: &'a Holding, about: &'a About) -> Vec<Label<'a>> {
    vec![
        ("cluster", &about.cluster),
        ("node", &about.node),
        ("card_uuid", &holding.card_uuid),
        ("device_uuid", &holding.device_uuid),
        ("holder", &holding.key),
    ]
}

fn info<'a>(holding: &'a Holding, key: &[Label<'a>]) -> Vec<Label<'a>> {
    let mut labels = key.to_vec();
    labels.push(("kind", holding.kind.name()));
    labels.push(("source", holding.source.name()));
    labels.push(("work", &holding.job_id));
    let owner = [
        ("org", &holding.org),
        ("project", &holding.project),
        ("user", &holding.user),
        ("queue", &holding.queue),
        ("class", &holding.class),
    ];
    labels.extend(owner.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))));
    labels
}
