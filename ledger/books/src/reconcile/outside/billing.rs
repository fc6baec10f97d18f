//! What Slurm bills a job by: the weights of `TRESBillingWeights` times what it has, cut to a whole number.
//!
//! Slurm adds the weighted resources up and stores the sum without its fraction: 4.5 becomes 4. The exact sum is kept here, beside Slurm's.
//! With `MAX_TRES` among `PriorityFlags` Slurm takes the largest on each node instead of the sum, which this does not know.

use rust_decimal::Decimal;

/// A resource and its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights(Vec<(String, Decimal)>);

/// Billing of some jobs, times their elapsed time. Unit: billing × seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Billing {
    /// By the weights; none without them.
    pub exact: Option<Decimal>,
    /// As Slurm has it.
    pub slurm: Decimal,
    /// What the whole numbers cut off of the exact billing.
    pub cut: Decimal,
    /// Exact less Slurm's, where that isn't the cut.
    pub unexplained: Decimal,
}

impl Weights {
    /// Reads `CPU=1.0,Mem=0.25G,GRES/gpu=4.5`. Errors: a part that is no name and number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut weights = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = || format!("{part:?} is not a resource and its weight, such as GRES/gpu=4.5");
            let (name, weight) = part.rsplit_once('=').ok_or_else(wrong)?;
            let name = name.trim().to_ascii_lowercase();
            // A weight of memory is for each unit of it: megabytes, or as its suffix says.
            let (digits, unit_mib) = match memory_unit_mib(&name, weight.trim()) {
                Some((digits, unit)) => (digits, unit),
                None => (weight.trim(), Decimal::ONE),
            };
            let weight: Decimal = digits.parse().map_err(|_| wrong())?;
            let weight = weight.checked_div(unit_mib).ok_or_else(wrong)?;
            weights.push((name, weight));
        }
        if weights.is_empty() {
            Err("no weights: write them as slurm.conf has them, such as CPU=1.0,GRES/gpu=4.5".to_owned())
        } else {
            Ok(Self(weights))
        }
    }

    /// Their sum over what a job has. Errors: an amount that is none.
    fn of(&self, tres: &str) -> Result<Decimal, String> {
        let mut sum = Decimal::ZERO;
        for part in tres.split(',').filter(|part| !part.is_empty()) {
            let Some((name, amount)) = part.rsplit_once('=') else { continue };
            let name = name.to_ascii_lowercase();
            let Some((_, weight)) = self.0.iter().find(|(known, _)| *known == name) else { continue };
            let (digits, unit_mib) = memory_unit_mib(&name, amount).unwrap_or((amount, Decimal::ONE));
            let amount: Decimal = digits.parse().map_err(|_| format!("{part:?} has no amount"))?;
            let more = amount.checked_mul(unit_mib).and_then(|amount| amount.checked_mul(*weight));
            sum = more.and_then(|more| sum.checked_add(more)).ok_or_else(|| format!("{part:?} is too large"))?;
        }
        Ok(sum)
    }
}

/// Digits and unit of an amount of memory. Unit: MiB.
fn memory_unit_mib<'a>(name: &str, text: &'a str) -> Option<(&'a str, Decimal)> {
    if name != "mem" {
        return None;
    }
    let (at, unit) = text.char_indices().next_back()?;
    let mib = match unit.to_ascii_uppercase() {
        'K' => Decimal::ONE / Decimal::from(1024),
        'M' => Decimal::ONE,
        'G' => Decimal::from(1024),
        'T' => Decimal::from(1024 * 1024),
        'P' => Decimal::from(1024 * 1024 * 1024),
        _ => return Some((text, Decimal::ONE)),
    };
    Some((&text[..at], mib))
}

impl Billing {
    /// Of one job's `AllocTRES` over its elapsed time; none where it has no billing. Errors: a billing or an amount that is no number.
    pub fn of(tres: &str, weights: Option<&Weights>, elapsed_ms: i64) -> Result<Option<Self>, String> {
        let Some(billing) = tres.split(',').find_map(|part| part.strip_prefix("billing=")) else { return Ok(None) };
        let slurm: Decimal = billing.parse().map_err(|_| format!("billing={billing:?} is not a number"))?;
        let seconds = Decimal::from(elapsed_ms) / Decimal::from(1000);
        let times =
            |billing: Decimal| billing.checked_mul(seconds).ok_or_else(|| format!("billing={billing} is too large"));
        let exact = weights.map(|weights| weights.of(tres)).transpose()?;
        let cut =
            exact.map(|exact| exact - exact.trunc()).filter(|_| exact.is_some_and(|exact| exact.trunc() == slurm));
        let rest = exact.map_or(Decimal::ZERO, |exact| exact - slurm - cut.unwrap_or_default());
        Ok(Some(Self {
            exact: exact.map(times).transpose()?,
            slurm: times(slurm)?,
            cut: times(cut.unwrap_or_default())?,
            unexplained: times(rest)?,
        }))
    }

    /// Of several: exact only where each is.
    pub(super) fn add(&mut self, other: &Self) {
        self.exact = self.exact.zip(other.exact).map(|(a, b)| a + b);
        self.slurm += other.slurm;
        self.cut += other.cut;
        self.unexplained += other.unexplained;
    }
}
