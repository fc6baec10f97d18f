//! A value over time, exact: points in whole milliseconds and thousandths of its unit.

use serde::Deserialize;

/// A value over time. Before its first point it has the first value, after its last the last, unless it repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// Time since the start of the scenario (or of the period) in milliseconds, and the value in thousandths of its unit; ascending.
    points: Vec<(i64, i64)>,
    is_linear: bool,
    /// Length of its period. Unit: milliseconds.
    repeat_ms: Option<i64>,
}

/// A curve as a scenario writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Constant(f64),
    Drawn(Drawn),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drawn {
    points: Vec<(f64, f64)>,
    #[serde(default)]
    interp: Interp,
    repeat_s: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Interp {
    #[default]
    Step,
    Linear,
}

/// Seconds or a value as thousandths, to the nearest.
fn thousandths(value: f64) -> i64 {
    (value * 1000.0).round() as i64
}

impl Curve {
    /// A value that never changes. Unit: thousandths of its unit.
    pub fn constant(thousandths: i64) -> Self {
        Self { points: vec![(0, thousandths)], is_linear: false, repeat_ms: None }
    }

    pub(crate) fn of(written: &Written) -> Result<Self, String> {
        let drawn = match written {
            Written::Constant(value) => return Ok(Self::constant(thousandths(*value))),
            Written::Drawn(drawn) => drawn,
        };
        let points: Vec<(i64, i64)> = drawn.points.iter().map(|(at, v)| (thousandths(*at), thousandths(*v))).collect();
        if points.is_empty() {
            return Err("a curve has at least one point".to_owned());
        }
        if !points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err("points of a curve ascend in time".to_owned());
        }
        let repeat_ms = drawn.repeat_s.map(thousandths);
        if repeat_ms.is_some_and(|period| period <= points[points.len() - 1].0 || points[0].0 != 0) {
            return Err("a curve that repeats begins at 0 and its period is longer than its last point".to_owned());
        }
        Ok(Self { points, is_linear: matches!(drawn.interp, Interp::Linear), repeat_ms })
    }

    /// Its value at a time. Unit: thousandths of its unit, a linear one cut to whole thousandths.
    pub fn at(&self, ms: i64) -> i64 {
        let ms = self.repeat_ms.map_or(ms, |period| ms.rem_euclid(period));
        let after = self.points.partition_point(|(at, _)| *at <= ms);
        let Some(&(from, value)) = after.checked_sub(1).and_then(|i| self.points.get(i)) else {
            return self.points[0].1;
        };
        match self.points.get(after) {
            Some((to, next)) if self.is_linear => value + (next - value) * (ms - from) / (to - from),
            _ => value,
        }
    }

    /// Its integral over [from, to). Unit: thousandths of its unit × milliseconds, doubled, so that a linear one is exact too.
    pub fn doubled_integral(&self, from_ms: i64, to_ms: i64) -> i128 {
        self.doubled_area(to_ms) - self.doubled_area(from_ms)
    }

    /// The integral from 0 to `ms`, doubled; negative before 0.
    fn doubled_area(&self, ms: i64) -> i128 {
        let Some(period) = self.repeat_ms else { return self.doubled_once(ms) };
        i128::from(ms.div_euclid(period)) * self.doubled_once(period) + self.doubled_once(ms.rem_euclid(period))
    }

    fn doubled_once(&self, ms: i64) -> i128 {
        if ms < 0 {
            return -2 * i128::from(self.points[0].1) * i128::from(-ms);
        }
        let mut sum = 2 * i128::from(self.points[0].1) * i128::from(self.points[0].0.clamp(0, ms));
        for (i, &(from, value)) in self.points.iter().enumerate() {
            let (from, from_value) = if from < 0 { (0, self.at(0)) } else { (from, value) };
            let to = self.points.get(i + 1).map_or(ms, |next| next.0.min(ms));
            if to <= from {
                continue;
            }
            let end = match self.points.get(i + 1) {
                Some((at, next)) if self.is_linear => {
                    // Exact where the piece is whole; where it is cut, the value there is cut to a thousandth, as `at` gives it.
                    if *at <= ms { *next } else { self.at(ms) }
                }
                _ => from_value,
            };
            sum += (i128::from(from_value) + i128::from(end)) * i128::from(to - from);
        }
        sum
    }

    /// Its mean over [from, to). Unit: thousandths of its unit.
    pub fn mean(&self, from_ms: i64, to_ms: i64) -> f64 {
        self.doubled_integral(from_ms, to_ms) as f64 / (2.0 * (to_ms - from_ms).max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(text: &str) -> Curve {
        #[derive(Deserialize)]
        struct File {
            c: Written,
        }
        Curve::of(&toml::from_str::<File>(text).unwrap().c).unwrap()
    }

    /// By hand: 100 for 10 s, 200 for 20 s, then 50: in 40 s 1000 + 4000 + 500 = 5500 unit-seconds, thousandths × ms, doubled: × 2,000,000.
    #[test]
    fn a_step_has_the_area_of_its_steps() {
        let steps = curve("c = { points = [[0, 100], [10, 200], [30, 50]] }");
        assert_eq!(steps.doubled_integral(0, 40_000), 5500 * 2_000_000);
        assert_eq!(steps.doubled_integral(5_000, 15_000), 1500 * 2_000_000);
        assert_eq!((steps.at(9_999), steps.at(10_000), steps.at(99_000)), (100_000, 200_000, 50_000));
    }

    /// By hand: from 0 to 100 over 10 s: 500 unit-seconds; its first half 125.
    #[test]
    fn a_line_has_the_area_of_its_triangle() {
        let line = curve("c = { points = [[0, 0], [10, 100]], interp = \"linear\" }");
        assert_eq!(line.doubled_integral(0, 10_000), 500 * 2_000_000);
        assert_eq!(line.doubled_integral(0, 5_000), 125 * 2_000_000);
        assert_eq!(line.at(2_500), 25_000);
    }

    /// By hand: 80 for 3 s of each 10: in 25 s three times 3 s and a rest of 5 s, of which 3: 3 × 240.
    #[test]
    fn a_period_comes_again() {
        let pulse = curve("c = { points = [[0, 80], [3, 0]], repeat_s = 10 }");
        assert_eq!(pulse.doubled_integral(0, 25_000), 720 * 2_000_000);
        assert_eq!((pulse.at(12_999), pulse.at(13_000)), (80_000, 0));
        let pieces: i128 = (0..25).map(|s| pulse.doubled_integral(s * 1000, s * 1000 + 1000)).sum();
        assert_eq!(pieces, pulse.doubled_integral(0, 25_000));
    }

    #[test]
    fn a_curve_that_cannot_be_drawn_is_refused() {
        #[derive(Deserialize)]
        struct File {
            c: Written,
        }
        for odd in [
            "c = { points = [] }",
            "c = { points = [[5, 1], [5, 2]] }",
            "c = { points = [[0, 1], [5, 2]], repeat_s = 5 }",
        ] {
            assert!(Curve::of(&toml::from_str::<File>(odd).unwrap().c).is_err(), "{odd}");
        }
    }
}
