//! Which of several reservations of one name a quarter hour of reserved cards is of.
//!
//! A row of `usage` has a reservation's name alone, and a name can come back: of another owner, in the same month. So each quarter hour is given to the
//! one that has the most of it; of equals, which both had all of it, to the one that began earlier, then to the one that is listed first.
//!
//! Start at [`SetAsides::at`]. Does not: cut a quarter hour. Where one reservation ends inside of one and the next begins there, the reserved time of that
//! quarter hour goes to one of the two as a whole.

use crate::site::Reservation;
use cardhour_domain::{BUCKET_MS, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// Reservations by cluster and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAsides {
    by_name: BTreeMap<(Name, Name), Vec<(Interval, u32)>>,
}

impl SetAsides {
    /// Of a list of which the first has the number `first`: as [`crate::report::ReportInput::reservations`] numbers them.
    pub fn of(reservations: &[Reservation], first: u32) -> Self {
        let mut by_name: BTreeMap<(Name, Name), Vec<(Interval, u32)>> = BTreeMap::new();
        for (reservation, number) in reservations.iter().zip(first..) {
            let name = (reservation.cluster.clone(), reservation.name.clone());
            by_name.entry(name).or_default().push((reservation.during, number));
        }
        Self { by_name }
    }

    /// The number of the reservation that has the quarter hour from `bucket` on; none where none of that name is listed.
    ///
    /// Where none of them is of that time, it is the one that begins last: a list that was corrected since has the name all the same.
    pub fn at(&self, cluster: &Name, name: &Name, bucket: Timestamp) -> Option<u32> {
        let same = self.by_name.get(&(cluster.clone(), name.clone()))?;
        if let [(_, only)] = same[..] {
            return Some(only);
        }
        let quarter = Interval::new(bucket, Timestamp::from_unix_ms(bucket.unix_ms() + BUCKET_MS))?;
        let within = |during: &Interval| during.overlap(quarter).map_or(0, Interval::length_ms);
        let most = same.iter().map(|(during, _)| within(during)).max()?;
        let of_most = same.iter().filter(|(during, _)| within(during) == most);
        let begin = |(during, number): &&(Interval, u32)| (during.start(), *number);
        let one = if most > 0 { of_most.min_by_key(begin) } else { of_most.max_by_key(begin) };
        one.map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{at, range};

    fn reservation(during: Interval) -> Reservation {
        let (cluster, name) = ("c".into(), "r".into());
        let (nodes, cards, model) = (Vec::new(), None, None);
        Reservation { cluster, name, during, nodes, cards, model, org: None, project: None, user: None }
    }

    /// The first until 15 March 10:07, the second from then on: the quarter hour from 10:00 has 7 minutes of the one and 8 of the other.
    #[test]
    fn a_quarter_hour_is_of_the_reservation_that_has_the_most_of_it() {
        let list = [
            reservation(range("2026-03-15T10:07", "2026-03-31")),
            reservation(range("2026-03-01", "2026-03-15T10:07")),
        ];
        let set_asides = SetAsides::of(&list, 5);
        let of = |time: &str| set_asides.at(&"c".into(), &"r".into(), at(time));
        assert_eq!(
            [of("2026-03-15T09:45"), of("2026-03-15T10:00"), of("2026-03-15T10:15")],
            [Some(6), Some(5), Some(5)]
        );
        assert_eq!(of("2026-04-02T00:00"), Some(5), "of none: the one that begins last");
        assert_eq!(set_asides.at(&"c".into(), &"other".into(), at("2026-03-15T10:00")), None);
        let both = SetAsides::of(&[list[0].clone(), reservation(range("2026-03-02", "2026-04-30"))], 0);
        assert_eq!(
            both.at(&"c".into(), &"r".into(), at("2026-03-20")),
            Some(1),
            "both have it: the one that began earlier"
        );
    }
}
