//! Pools small enough to work out by hand.

use super::*;

fn request(cores: u64, cards: u32, card_milli: u32) -> Request {
    Request { cpu_milli: cores * 1000, memory_mib: 1, cards, card_milli, models: Vec::new() }
}

fn host(cores: u64, card_milli_left: &[u32]) -> Host {
    Host { model: None, cpu_milli_left: cores * 1000, memory_mib_left: 100, card_milli_left: card_milli_left.to_vec() }
}

fn placer(policy: Policy, hosts: &[Host], usual: &[Request]) -> Placer {
    Placer::new(policy, hosts.to_vec(), &policy.mix(usual), 1)
}

fn chosen(policy: Policy, hosts: &[Host], usual: &[Request], request: &Request) -> Option<(usize, Vec<usize>)> {
    placer(policy, hosts, usual).choose(request).map(|place| (place.host, place.cards))
}

#[test]
fn a_request_fits_by_processors_memory_cards_and_model() {
    let mut models = Models::default();
    let (t4, h200) = (models.id("T4").unwrap(), models.id("H200").unwrap());
    let asks = |cards, card_milli| request(8, cards, card_milli);
    let has = |host: &Host, request: &Request| host.fits(request);
    let two = host(8, &[1000, 400]);
    assert!(has(&two, &asks(1, 1000)) && has(&two, &asks(0, 0)));
    assert!(!has(&two, &asks(2, 1000)), "two whole cards, and one is left");
    assert!(!has(&host(7, &[1000]), &asks(1, 1)), "a core too few");
    assert!(!has(&two, &Request { memory_mib: 101, ..asks(1, 1) }), "a MiB too few");
    let of = |model| Host { model, ..two.clone() };
    let only_t4 = Request { models: vec![t4], ..asks(1, 1) };
    assert!(has(&of(Some(t4)), &only_t4) && !has(&of(Some(h200)), &only_t4) && !has(&of(None), &only_t4));
    assert!(has(&of(None), &asks(1, 1)) && has(&host(8, &[]), &asks(0, 0)) && !has(&host(8, &[]), &asks(1, 1)));
}

#[test]
fn a_share_goes_to_the_tightest_card_and_nothing_goes_where_it_does_not_fit() {
    let hosts = [host(8, &[1000, 500, 300, 300])];
    for policy in [Policy::DotProd, Policy::GpuClustering, Policy::GpuPacking, Policy::BestFit] {
        assert_eq!(chosen(policy, &hosts, &[], &request(1, 1, 300)), Some((0, vec![2])), "{policy:?}");
        assert_eq!(chosen(policy, &hosts, &[], &request(1, 1, 301)), Some((0, vec![1])), "{policy:?}");
    }
    for policy in Policy::ALL {
        assert_eq!(chosen(policy, &hosts, &[request(1, 1, 300)], &request(1, 2, 1000)), None, "{policy:?}");
    }
}

#[test]
fn the_dot_product_and_the_best_fit_score_as_by_hand() {
    // 64 of 128 cores and 4 of 8 cards are left; half of each is asked for. Dot product: ½ · (½ · ½ + ½ · ½) = ¼, so 75. On the other host, with all 128 and 8:
    // ½ · (1 · ½ + 1 · ½) = ½, so 50: the emptier host is the worse. Best fit: nothing is left on the first, so 100; half on the other, so 50.
    let (small, large) = (host(64, &[1000; 4]), host(128, &[1000; 8]));
    let half = request(64, 4, 1000);
    for policy in [Policy::DotProd, Policy::BestFit] {
        assert_eq!(chosen(policy, &[large.clone(), small.clone()], &[], &half).unwrap().0, 1, "{policy:?}");
    }
    // 100 · (1 − ½ · (1/128)) is 99.6 and 100 · (1 − ½ · (2/128)) 99.2: cut to 99, both, and the first is chosen.
    let tie = [host(3, &[1000]), host(2, &[1000])];
    assert_eq!(chosen(Policy::BestFit, &tie, &[], &request(1, 1, 1000)).unwrap().0, 0);
    // 100 · (1 − ½ · (3/128)) is 98.8: cut to 98.
    let apart = [host(4, &[1000]), host(2, &[1000])];
    assert_eq!(chosen(Policy::BestFit, &apart, &[], &request(1, 1, 1000)).unwrap().0, 1);
}

#[test]
fn clustering_keeps_sorts_together_and_packing_opens_no_card_without_need() {
    let mut clustering = placer(Policy::GpuClustering, &[host(99, &[1000; 4]), host(99, &[1000; 4])], &[]);
    let (share, whole) = (request(1, 1, 200), request(1, 1, 1000));
    let mut put = |request: &Request| {
        let place = clustering.choose(request).unwrap();
        clustering.take(request, &place);
        place.host
    };
    // Both are empty; the second whole card goes to the first's host; the share to an empty host rather than to another sort.
    assert_eq!([put(&whole), put(&whole), put(&share), put(&share), put(&whole)], [0, 0, 1, 1, 0]);

    let hosts = [host(99, &[1000; 4]), host(99, &[1000, 0]), host(99, &[700, 1000])];
    // A share goes to the card that is shared already; a whole card to a used host; two whole cards to the free one, the only that has them.
    for (request, at) in [(&share, 2), (&whole, 1), (&request(1, 2, 1000), 0)] {
        assert_eq!(chosen(Policy::GpuPacking, &hosts, &[], request).unwrap().0, at, "{request:?}");
    }
}

#[test]
fn fgd_takes_the_host_where_the_usual_requests_lose_least() {
    // Usually: half a card. A request of 300 milli. On a card with 500 left it leaves 200, which nobody can use: F grows by 200. On one with 800 it leaves 500: F
    // stays 0. Best fit takes the first, FGD the second.
    let usual = [request(1, 1, 500)];
    let hosts = [host(9, &[500]), host(9, &[800])];
    assert_eq!(chosen(Policy::BestFit, &hosts, &usual, &request(1, 1, 300)).unwrap(), (0, vec![0]));
    assert_eq!(chosen(Policy::Fgd, &hosts, &usual, &request(1, 1, 300)).unwrap(), (1, vec![0]));
    // Of one host the card, too.
    assert_eq!(chosen(Policy::Fgd, &[host(9, &[500, 800])], &usual, &request(1, 1, 300)).unwrap(), (0, vec![1]));
}

#[test]
fn ours_sees_the_processors_run_short_before_they_do() {
    // Usually: a whole card with 8 cores. A request without a card takes 16 cores of one of two hosts with four free cards each: of 32 cores, or of 64.
    // F is 0 on both, before and after, so FGD takes the first. But there four cards had cores for four, and then have for two: a room of 2,000 is lost.
    let usual = [request(8, 1, 1000)];
    let hosts = [host(32, &[1000; 4]), host(64, &[1000; 4])];
    let asks = request(16, 0, 0);
    assert_eq!(chosen(Policy::Fgd, &hosts, &usual, &asks).unwrap().0, 0);
    assert_eq!(chosen(Policy::Cardhour, &hosts, &usual, &asks).unwrap().0, 1);
}

#[test]
fn ours_keeps_whole_hosts_for_gangs_however_rare() {
    // One of 40 asks for a whole host of four: too rare for the mix of FGD, which covers 95 of 100.
    let mut usual = vec![request(1, 1, 1000); 39];
    usual.push(request(4, 4, 1000));
    assert_eq!((Policy::Fgd.mix(&usual).kinds.len(), Policy::Cardhour.mix(&usual).kinds.len()), (1, 2));
    let hosts = [host(8, &[1000; 4]), host(8, &[0, 1000, 1000, 1000])];
    assert_eq!(chosen(Policy::Fgd, &hosts, &usual, &usual[0]).unwrap().0, 0);
    assert_eq!(chosen(Policy::Cardhour, &hosts, &usual, &usual[0]).unwrap().0, 1);
}

#[test]
fn what_is_remembered_is_what_would_be_worked_out_anew() {
    let usual: Vec<Request> =
        [(1, 1, 300), (3, 1, 1000), (2, 1, 700), (9, 2, 1000), (4, 0, 0)].map(|(c, n, m)| request(c, n, m)).to_vec();
    let hosts = [host(16, &[1000; 4]), host(24, &[1000; 2]), host(12, &[1000; 4]), host(9, &[])];
    for policy in Policy::ALL.into_iter().filter(|&policy| policy != Policy::Random) {
        let mut pool = placer(policy, &hosts, &usual);
        let mut held = Vec::new();
        for step in 0..200_usize {
            let request = &usual[(step * 7 + step / 5) % usual.len()];
            // One that remembers nothing. (It has no sorts either, so for clustering only fit is compared.)
            let now: Vec<Host> = pool.hosts().cloned().collect();
            let anew = placer(policy, &now, &usual).choose(request);
            let place = pool.choose(request);
            match policy {
                Policy::GpuClustering => assert_eq!(place.is_some(), anew.is_some()),
                _ => assert_eq!(place, anew, "{policy:?} at step {step}"),
            }
            match place {
                Some(place) => {
                    pool.take(request, &place);
                    held.push((request, place));
                }
                None => {
                    let (request, place) = held.remove(step % held.len());
                    pool.give_back(request, &place);
                }
            }
        }
        held.into_iter().for_each(|(request, place)| pool.give_back(request, &place));
        assert!(pool.hosts().eq(&hosts), "{policy:?} gives back what it took");
    }
}
