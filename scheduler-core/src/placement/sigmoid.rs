//! ⌊100 · sigmoid(x)⌋ for a fraction x, in integers.
//!
//! The score is at least k where x ≥ ln(k / (100 − k)). Those 99 edges stand here in billionths, rounded away from zero (k of 50 is exactly 0), and x is
//! held against them by multiplication: the same score on any machine. It differs from exact arithmetic only where x lies within a billionth of an edge.

/// Billionths.
const BILLION: i128 = 1_000_000_000;

/// ln(k / (100 − k)) for k of 50 to 99, billionths, rounded up. Below 50 it is the same with the other sign.
const EDGES: [i128; 50] = [
    0,
    40_005_335,
    80_042_708,
    120_144_312,
    160_342_651,
    200_670_696,
    241_162_057,
    281_851_153,
    322_773_393,
    363_965_378,
    405_465_109,
    447_312_219,
    489_548_226,
    532_216_814,
    575_364_145,
    619_039_209,
    663_294_218,
    708_185_058,
    753_771_803,
    800_119_301,
    847_297_861,
    895_384_048,
    944_461_609,
    994_622_576,
    1_045_968_556,
    1_098_612_289,
    1_152_679_510,
    1_208_311_206,
    1_265_666_374,
    1_324_925_415,
    1_386_294_362,
    1_450_010_176,
    1_516_347_490,
    1_585_627_264,
    1_658_228_077,
    1_734_601_056,
    1_815_289_967,
    1_900_958_762,
    1_992_430_165,
    2_090_741_097,
    2_197_224_578,
    2_313_634_930,
    2_442_347_036,
    2_586_689_345,
    2_751_535_314,
    2_944_438_980,
    3_178_053_831,
    3_476_098_690,
    3_891_820_299,
    4_595_119_851,
];

/// ⌊100 · sigmoid(`over` / `under`)⌋, 0 to 99; `under` is above zero. Fractions so large that the product leaves 128 bits don't occur: `over` is 64 bits wide.
pub fn score(over: i64, under: i64) -> i64 {
    let at_least = |k: i64| {
        let edge = if k >= 50 { EDGES[(k - 50) as usize] } else { -EDGES[(50 - k) as usize] };
        i128::from(over) * BILLION >= edge * i128::from(under)
    };
    // The edges rise: the number of those reached, found by halving.
    let (mut reached, mut missed) = (0, 100);
    while missed - reached > 1 {
        let middle = (reached + missed) / 2;
        if at_least(middle) {
            reached = middle;
        } else {
            missed = middle;
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_function_itself() {
        for thousandths in -9_000i64..=9_000 {
            let exact = 100.0 / (1.0 + (-(thousandths as f64) / 1000.0).exp());
            assert_eq!(score(thousandths, 1000), exact as i64, "at {thousandths} thousandths");
        }
    }

    #[test]
    fn nothing_gained_and_nothing_lost_is_fifty() {
        assert_eq!((score(0, 7), score(-1, 1_000_000), score(1, 1_000_000)), (50, 49, 50));
        assert_eq!((score(i64::MAX, 1), score(i64::MIN + 1, 1)), (99, 0));
    }
}
