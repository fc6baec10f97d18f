use super::*;
use crate::spool::fixture::{one_of_each, stretch, watch};
use cardhour_domain::{Interval, Sample, Timestamp};
use proptest::prelude::*;

/// What a record says of all streams, each read by itself as sealing does; the words carry on from one decoder each.
fn decoded(decoders: &mut [Decoder; 6], record: &[u8]) -> Result<Vec<Rows>, Malformed> {
    let mut all = Vec::new();
    for (decoder, stream) in decoders.iter_mut().zip(Stream::ALL) {
        all.extend(decoder.decode(record, stream)?);
    }
    Ok(all)
}

#[test]
fn a_tick_comes_back_as_it_went_in_and_so_does_the_next_that_uses_its_words() {
    let (mut words, mut decoders) = (Words::default(), Default::default());
    let (first, second) = (one_of_each(1_800_000_000), one_of_each(1_800_000_015));
    let (one, two) = (encode(&mut words, &first), encode(&mut words, &second));
    assert_eq!(decoded(&mut decoders, &one).as_ref(), Ok(&first));
    assert_eq!(decoded(&mut decoders, &two).as_ref(), Ok(&second));
    assert!(two.len() < one.len() / 2, "the second says no word again: {} after {} bytes", two.len(), one.len());
}

#[test]
fn a_watch_is_written_as_before() {
    let bytes = encode(&mut Words::default(), &[Rows::Watches(vec![watch(stretch(0, 15))])]);
    // By hand: the words, in the order in which they are met; then the section.
    let mut by_hand = vec![4, 7];
    by_hand.extend_from_slice(b"watches");
    by_hand.extend_from_slice(b"\x02n1\x03lab\x05GPU-1");
    // Word 0; 8 bytes; 1 row; the instant 0 lies 0 after 0; 15,000 ms, twice that for its sign, is 30,000 = 0b1_1101010_0110000 in groups of 7
    // bits, the lowest first; words 1, 2 and 3.
    by_hand.extend_from_slice(&[0, 8, 1, 0, 0b1011_0000, 0b1110_1010, 1, 1, 2, 3]);
    assert_eq!(bytes, by_hand);
}

#[test]
fn every_row_is_written_as_before() {
    // What is pinned is that nothing changes: the bytes were read back as the rows they came from, and a journal of today must be read tomorrow.
    let bytes = encode(&mut Words::default(), &one_of_each(1_800_000_000));
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<&str> = (0..hex.len()).step_by(64).map(|from| &hex[from..hex.len().min(from + 64)]).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn words_of_a_record_that_was_not_written_are_said_again() {
    let (mut words, mut decoders) = (Words::default(), Default::default());
    let tick = one_of_each(0);
    encode(&mut words, &tick);
    words.truncate(0);
    let again = encode(&mut words, &tick);
    assert_eq!(decoded(&mut decoders, &again), Ok(tick));
}

#[test]
fn instants_at_the_ends_of_time_and_negative_values_come_back() {
    let ends = [i64::MIN + 1, i64::MAX - 1, 0, -1].map(Timestamp::from_unix_ms);
    let during = ends.map(|start| Interval::new(start, Timestamp::from_unix_ms(start.unix_ms() + 1)).unwrap());
    let rows = vec![Rows::Watches(during.map(watch).to_vec())];
    let bytes = encode(&mut Words::default(), &rows);
    assert_eq!(decoded(&mut Default::default(), &bytes), Ok(rows));
}

#[test]
fn a_stream_of_a_later_collector_is_said_to_be_unknown() {
    let mut bytes = encode(&mut Words::default(), &[Rows::Watches(vec![watch(stretch(0, 15))])]);
    let at = bytes.windows(7).position(|w| w == b"watches").unwrap();
    bytes[at..at + 7].copy_from_slice(b"glimpse");
    let error = Decoder::default().decode(&bytes, Stream::Samples).unwrap_err();
    assert_eq!(error.to_string(), "the record has a stream that we don't know");
}

proptest! {
    #[test]
    fn bytes_that_are_no_record_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decoded(&mut Default::default(), &bytes);
    }

    #[test]
    fn a_record_with_a_byte_changed_is_read_without_a_panic(at in 0usize..600, byte in any::<u8>()) {
        let mut bytes = encode(&mut Words::default(), &one_of_each(1_800_000_000));
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = decoded(&mut Default::default(), &bytes);
    }

    #[test]
    fn any_numbers_come_back(start in any::<i64>(), length in 1i64..1 << 40, value in any::<i64>(), percent in 0i32..=100_000) {
        let start = Timestamp::from_unix_ms(start.min(i64::MAX - (1 << 41)));
        let during = Interval::new(start, start.checked_add_ms(length).unwrap()).unwrap();
        let sample = Sample {
            during,
            pcie_bytes: cardhour_domain::Reading::Seen(value),
            sm_active_pct: cardhour_domain::Reading::Seen(cardhour_domain::Percent::from_thousandths(percent).unwrap()),
            ..crate::spool::fixture::sample("GPU-1", 0)
        };
        let rows = vec![Rows::Samples(vec![sample])];
        let bytes = encode(&mut Words::default(), &rows);
        prop_assert_eq!(decoded(&mut Default::default(), &bytes), Ok(rows));
    }
}
