//! LED-4 of telemetry: order, cuts and repeats don't matter.

use super::super::scrape::{Scrape, read as read_scrapes};
use super::super::smi_log::read;
use super::super::{Readout, Telemetry};
use super::*;
use proptest::prelude::*;

/// Rows of up to three cards, with holes, blanks and counters.
fn any_rows() -> impl Strategy<Value = Vec<String>> {
    let row = (
        0i64..400,
        0u8..3,
        prop_oneof![Just("[N/A]".to_owned()), (0u8..=100).prop_map(|p| format!("{p} %"))],
        0u32..400,
    );
    prop::collection::vec(row, 1..60).prop_map(|rows| {
        // The time decides the rest, so that rows of one card and instant are equal.
        let mut by_instant = std::collections::BTreeMap::new();
        for (second, card, util, watts) in rows {
            by_instant.insert((second, card), (util, watts));
        }
        let row = |((second, card), (util, watts)): (&(i64, u8), &(String, u32))| {
            let (minute, s) = (second / 60, second % 60);
            let counter = second * 1_000 * 250;
            format!("2026/03/01 00:{minute:02}:{s:02}.000, GPU-{card}, {util}, 12 MiB, {watts}.25 W, {counter} mJ\n")
        };
        by_instant.iter().map(row).collect()
    })
}

fn log(rows: &[String]) -> Readout {
    let head =
        "timestamp, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W], total_energy_consumption [mJ]\n";
    read(format!("{head}{}", rows.concat()).as_bytes(), None, &setting()).unwrap()
}

fn together(readouts: impl IntoIterator<Item = Readout>) -> Telemetry {
    Telemetry::of(readouts, &setting())
}

proptest! {
    #[test]
    fn a_log_cut_into_two_files_gives_the_same_samples(rows in any_rows(), cut in 0usize..60) {
        let (a, b) = rows.split_at(cut.min(rows.len()));
        prop_assert_eq!(together([log(a), log(b)]), together([log(&rows)]));
        prop_assert_eq!(together([log(b), log(a)]), together([log(&rows)]));
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_a_file_twice_is_one(rows in any_rows().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))) {
        let (rows, shuffled) = rows;
        prop_assert_eq!(together([log(&shuffled)]), together([log(&rows)]));
        prop_assert_eq!(together([log(&rows), log(&rows)]), together([log(&rows)]));
    }

    #[test]
    fn samples_of_one_device_never_overlap_and_cover_no_more_than_three_steps_each(rows in any_rows()) {
        let told = together([log(&rows)]);
        for pair in told.samples.windows(2) {
            if pair[0].device_uuid == pair[1].device_uuid {
                prop_assert!(pair[0].during.end() <= pair[1].during.start());
            }
        }
        prop_assert_eq!(told.samples.len(), rows.len());
    }

    #[test]
    fn scrapes_in_any_order_and_twice_give_the_same(order in Just((0..12i64).collect::<Vec<_>>()).prop_shuffle()) {
        let text = |s: i64| format!(
            "DCGM_FI_DEV_GPU_UTIL{{UUID=\"GPU-a\",pod=\"p{}\",namespace=\"ns\"}} {}\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{UUID=\"GPU-a\"}} {}\n",
            s / 5, s * 7, 1_000_000 + s * 3_000_000
        );
        let texts: Vec<_> = order.iter().map(|s| (*s, text(*s))).collect();
        let scrapes: Vec<_> = texts.iter().map(|(s, text)| Scrape { text: text.as_bytes(), at: Some(Timestamp::from_unix_s(1_000 + s * 30)) }).collect();
        let twice: Vec<_> = scrapes.iter().chain(&scrapes).copied().collect();
        let mut sorted = scrapes.clone();
        sorted.sort_by_key(|scrape| scrape.at);
        let told = together([read_scrapes(&sorted, &setting()).unwrap()]);
        prop_assert_eq!(&together([read_scrapes(&scrapes, &setting()).unwrap()]), &told);
        prop_assert_eq!(&together([read_scrapes(&twice, &setting()).unwrap()]), &told);
        let (a, b) = scrapes.split_at(5);
        prop_assert_eq!(&together([read_scrapes(a, &setting()).unwrap(), read_scrapes(b, &setting()).unwrap()]), &told);
    }
}
