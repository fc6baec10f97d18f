use super::*;

#[track_caller]
fn check(text: &str, cards: &str) {
    let read = cards_in_tres(text, "gres/gpu").unwrap();
    assert_eq!(read.share.cards().normalize().to_string(), cards, "{text}");
}

#[test]
fn s05_s06_the_untyped_count_is_the_total_over_nodes_and_typed_ones_are_never_added() {
    check("billing=19,cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=32G,node=1", "1");
    check("billing=12,cpu=12,gres/gpu=4,mem=748000M,node=4", "4");
    check("cpu=8,gres/gpu=6,gres/gpu:a100=4,gres/gpu:h100=2", "6");
    check("cpu=8,gres/gpu:a100=4,gres/gpu:h100=2", "6");
    check("gres/gpu:4", "4");
    check("", "0");
    check("billing=1,cpu=1,mem=1000M,node=1", "0");
    check("gres/gpu_mem=40G,gres/gpu=1", "1");
    check("gres/shard=5,gres/gpu=1", "1");
    check("gres/gpu=1K", "1024");
    check("N/A", "0");
}

#[test]
fn s07_a_type_name_with_a_dot_is_counted() {
    // Two instances of four of seven compute slices each are 8/7 of a card.
    let read = cards_in_tres("cpu=4,gres/gpu:nvidia_h200_nvl_4g.71gb=2", "gres/gpu").unwrap();
    assert_eq!(read.share, CardShare::from_fraction(8, 7).unwrap());
    assert_eq!((read.model, read.mig_profile), (Some("nvidia_h200_nvl"), Some("4g.71gb")));
    let read = cards_in_tres("gres/gpu:rtx-6000.ada:v2=3", "gres/gpu").unwrap();
    assert_eq!((read.share, read.model), (CardShare::from_cards(3).unwrap(), Some("rtx-6000.ada:v2")));
}

#[test]
fn the_only_type_tells_the_model() {
    let model = |text| cards_in_tres(text, "gres/gpu").unwrap().model;
    assert_eq!(model("gres/gpu=2,gres/gpu:a100=2"), Some("a100"));
    assert_eq!(model("gres/gpu=2,gres/gpu:a100=1,gres/gpu:h100=1"), None);
    assert_eq!(model("gres/gpu=2,gres/gpu:a100=1"), None);
    assert_eq!(model("gres/gpu=2"), None);
}

#[test]
fn slices_beside_whole_cards_count_as_their_part() {
    // Three of them: two whole cards and a seventh.
    let read = cards_in_tres("gres/gpu=3,gres/gpu:1g.10gb=1,gres/gpu:h100=2", "gres/gpu").unwrap();
    assert_eq!(read.share, CardShare::from_fraction(15, 7).unwrap());
    assert_eq!((read.model, read.mig_profile), (None, None));
    let read = cards_in_tres("gres/gpu=1,gres/gpu:a30_2g.12gb=1", "gres/gpu").unwrap();
    assert_eq!(read.share, CardShare::from_fraction(1, 2).unwrap());
}

#[test]
fn another_resource_can_count_as_the_card() {
    let text = "billing=4.5,cpu=64,mem=62.50G,node=8,gres/shard=3";
    for (wanted, cards) in [("cpu", "64"), ("node", "8"), ("billing", "4.5"), ("gres/shard", "3")] {
        assert_eq!(cards_in_tres(text, wanted).unwrap().share.cards().normalize().to_string(), cards, "{wanted}");
    }
}

#[test]
fn s26_a_text_that_cannot_be_read_is_an_error_and_never_no_cards() {
    for text in ["gres/gpu", "cpu=4,gres/gp", "gres/gpu=two", "gres/gpu=-1", "1=8,2=24000,1001=2", "=4", "gres/gpu="] {
        assert!(cards_in_tres(text, "gres/gpu").is_err(), "{text}");
    }
    assert!(matches!(cards_in_tres("gres/gpu=1000000000", "gres/gpu"), Err(TresError::Count { .. })));
    assert!(matches!(cards_in_tres("gres/gpu=1,gres/gpu=2", "gres/gpu"), Err(TresError::Twice(_))));
}

#[test]
fn the_gres_texts_of_older_slurm_are_read() {
    let cards = |text| cards_in_gres(text, "gres/gpu").unwrap().share.cards().normalize().to_string();
    for (text, expected) in [
        ("gpu:2", "2"),
        ("gpu:tesla:2", "2"),
        ("gpu:h100:2(IDX:0-1)", "2"),
        ("gpu:h100:2(IDX:0,3),shard:1", "2"),
        ("gpu", "1"),
        ("gres:gpu:a100:4", "4"),
        ("craynetwork:1", "0"),
        ("(null)", "0"),
    ] {
        assert_eq!(cards(text), expected, "{text}");
    }
    assert!(cards_in_gres("gpu:99999999999", "gres/gpu").is_err());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_count_panic(text in "[gres/pu:=,.0-9(\\[\\])é-]{0,32}") {
        let _ = cards_in_tres(&text, "gres/gpu");
        let _ = cards_in_gres(&text, "gres/gpu");
    }
}
