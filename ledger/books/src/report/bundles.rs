//! Cells that no figure of a report tells apart, added up before anything else is done with them.
//!
//! A report of a trace reads a hundred thousand cells and has a dozen rows. What decides a cell's row, price and leaf is who
//! holds it, where it is, and its slot; so cells are first added up by those, in the only loop over all of them, and everything that
//! looks at texts is done once for each of the few sums.

use super::dimension::Dimension;
use super::input::{ReportAttempt, ReportInput, is_failed};
use super::names::{Lists, Tuples};
use crate::cell::{Cell, Used};
use crate::site::Reservation;
use cardhour_domain::{CardShare, CardState, CardTime, Name};
use rustc_hash::FxHashMap;

/// Some cells, added up.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    /// Who holds it: index into [`Bundles::classes`].
    pub class: u32,
    /// Where it is: index into [`Bundles::places`].
    pub place: u32,
    /// Which share of a card it is, as a number: 0 for whole cards. [`Bundles::share`] says which.
    pub share: u32,
    pub state: CardState,
    pub slot: u32,
    /// The reservation, of reserved time: index into the input's; none where nobody lists it.
    pub set_aside: Option<u32>,
    pub card_time: CardTime,
    pub billed_time: CardTime,
    pub unseen: CardTime,
    pub unproven: CardTime,
    /// As in a cell: none where telemetry tells nothing of it.
    pub used: Option<Box<Used>>,
}

/// Attempts that are alike in all that prices and the report look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class<'a> {
    /// One of them; none for time that nobody holds, or that a source gave without its job.
    pub attempt: Option<&'a ReportAttempt>,
    pub is_failed: bool,
    pub asked: AskedOf,
}

/// What is known of the cards an attempt asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedOf {
    /// Nothing.
    Unknown,
    /// As many as it had.
    Same,
    /// More or fewer: in proportion, by attempt.
    Other,
}

/// Where a cell is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BundlePlace<'a> {
    pub cluster: &'a Name,
    pub pool: Option<&'a Name>,
    pub node: Option<&'a Name>,
    pub model: Option<&'a Name>,
    pub mig_profile: Option<&'a Name>,
}

/// All cells of an input, in bundles.
pub(crate) struct Bundles<'a> {
    pub all: Vec<Bundle>,
    pub classes: Vec<Class<'a>>,
    pub places: Vec<BundlePlace<'a>>,
    shares: Vec<CardShare>,
    reservations: &'a [Reservation],
    /// Bundle of each cell.
    pub of_cell: Vec<u32>,
    /// Which attempts hold something in which bundle; neighbours that repeat are left out.
    pub holders: Vec<(u32, u32)>,
    /// Time by bundle and attempt, of attempts that asked for other than they had.
    pub resized: FxHashMap<(u32, u32), CardTime>,
}

const UNKNOWN: u32 = u32::MAX;

impl<'a> Bundles<'a> {
    /// For a report by these dimensions; fewer dimensions, fewer bundles.
    pub fn of(input: &'a ReportInput, by: &[Dimension]) -> Self {
        let mut classes = Classes::new(input, by);
        let mut places: Tuples<'a, 5> = Tuples::new();
        let mut shares: Vec<CardShare> = Vec::new();
        let mut of_share: FxHashMap<CardShare, u32> = FxHashMap::default();
        let mut numbers: FxHashMap<(u64, u64, Option<u32>), u32> = FxHashMap::default();
        let mut all: Vec<Bundle> = Vec::new();
        let mut of_cell = Vec::with_capacity(input.cells.len());
        let mut holders: Vec<(u32, u32)> = Vec::with_capacity(input.cells.len());
        let mut resized: FxHashMap<(u32, u32), CardTime> = FxHashMap::default();
        for cell in &input.cells {
            let class = classes.of_cell(cell);
            let place = places.number([
                Some(&cell.cluster),
                cell.pool.as_ref(),
                cell.node.as_ref(),
                cell.model.as_ref(),
                cell.mig_profile.as_ref(),
            ]);
            let share = cell.share.map_or(0, |share| {
                *of_share.entry(share).or_insert_with(|| {
                    shares.push(share);
                    u32::try_from(shares.len()).expect("fewer shares than cells")
                })
            });
            let state_and_slot = (cell.state as u64) << 32 | u64::from(cell.slot);
            let key =
                (u64::from(class) << 32 | u64::from(place), u64::from(share) << 40 | state_and_slot, cell.set_aside);
            let number = *numbers.entry(key).or_insert_with(|| {
                let zero = CardTime::ZERO;
                let (state, slot, set_aside) = (cell.state, cell.slot, cell.set_aside);
                let (card_time, billed_time, unseen, unproven) = (zero, zero, zero, zero);
                let used = None;
                all.push(Bundle {
                    class,
                    place,
                    share,
                    state,
                    slot,
                    set_aside,
                    card_time,
                    billed_time,
                    unseen,
                    unproven,
                    used,
                });
                u32::try_from(all.len() - 1).expect("fewer bundles than cells")
            });
            let bundle = &mut all[number as usize];
            bundle.card_time += cell.card_time;
            bundle.billed_time += cell.billed_time;
            bundle.unseen += cell.unseen;
            bundle.unproven += cell.unproven;
            if let Some(used) = &cell.used {
                bundle.used.get_or_insert_default().add(used);
            }
            of_cell.push(number);
            if let (CardState::Held, Some(attempt)) = (cell.state, cell.attempt) {
                if holders.last() != Some(&(number, attempt)) {
                    holders.push((number, attempt));
                }
                if classes.all[class as usize].asked == AskedOf::Other {
                    *resized.entry((number, attempt)).or_default() += cell.card_time;
                }
            }
        }
        let places = places.all().iter().map(|&[cluster, pool, node, model, mig_profile]| BundlePlace {
            cluster: cluster.expect("every cell has a cluster"),
            pool,
            node,
            model,
            mig_profile,
        });
        let (classes, places, reservations) = (classes.all, places.collect(), &input.reservations[..]);
        Self { all, classes, places, shares, reservations, of_cell, holders, resized }
    }

    /// Org, project and user of the reservation that a bundle is of; none of what isn't reserved, or by nobody who is known.
    pub fn set_aside_for(&self, bundle: &Bundle) -> Option<[Option<&'a Name>; 3]> {
        let set_aside = &self.reservations[bundle.set_aside? as usize];
        Some([set_aside.org.as_ref(), set_aside.project.as_ref(), set_aside.user.as_ref()])
    }

    pub fn class(&self, bundle: &Bundle) -> &Class<'a> {
        &self.classes[bundle.class as usize]
    }

    pub fn place(&self, bundle: &Bundle) -> &BundlePlace<'a> {
        &self.places[bundle.place as usize]
    }

    /// The share of a card, where it is less than one.
    pub fn share(&self, bundle: &Bundle) -> Option<CardShare> {
        bundle.share.checked_sub(1).map(|share| self.shares[share as usize])
    }
}

/// Finds the class of each attempt, once.
struct Classes<'a, 'b> {
    input: &'a ReportInput,
    all: Vec<Class<'a>>,
    of_attempt: Vec<u32>,
    numbers: FxHashMap<(u64, u64), u32>,
    /// Org, project, user, queue, class.
    names: Tuples<'a, 5>,
    labels: Vec<(&'b Name, Tuples<'a, 1>)>,
    labelled: Lists,
    by_state: bool,
}

impl<'a, 'b> Classes<'a, 'b> {
    fn new(input: &'a ReportInput, by: &'b [Dimension]) -> Self {
        let labels = by.iter().filter_map(|dimension| match dimension {
            Dimension::Label(name) => Some((name, Tuples::new())),
            _ => None,
        });
        Self {
            input,
            all: Vec::new(),
            of_attempt: vec![UNKNOWN; input.attempts.len()],
            numbers: FxHashMap::default(),
            names: Tuples::new(),
            labels: labels.collect(),
            labelled: Lists::default(),
            by_state: by.contains(&Dimension::State),
        }
    }

    fn of_cell(&mut self, cell: &Cell) -> u32 {
        match cell.attempt {
            Some(index) if self.of_attempt[index as usize] != UNKNOWN => self.of_attempt[index as usize],
            Some(index) => {
                let class = self.find(&self.input.attempts[index as usize]);
                self.of_attempt[index as usize] = class;
                class
            }
            None => {
                let nobody = Class { attempt: None, is_failed: false, asked: AskedOf::Unknown };
                self.numbered((u64::MAX, u64::MAX), nobody)
            }
        }
    }

    fn find(&mut self, attempt: &'a ReportAttempt) -> u32 {
        let ReportAttempt { org, project, user, queue, class, .. } = attempt;
        let names = self.names.number([org.as_ref(), project.as_ref(), user.as_ref(), queue.as_ref(), class.as_ref()]);
        let is_failed = is_failed(attempt.state);
        let asked = match attempt.cards_requested {
            None => AskedOf::Unknown,
            Some(asked) if asked == attempt.cards => AskedOf::Same,
            Some(_) if attempt.cards.is_zero() => AskedOf::Unknown,
            Some(_) => AskedOf::Other,
        };
        let state = if self.by_state { attempt.state as u64 } else { 0 };
        let numbers: Vec<u32> =
            self.labels.iter_mut().map(|(name, labels)| labels.number([attempt.labels.get(*name)])).collect();
        let labelled = if numbers.is_empty() { 0 } else { self.labelled.number(&numbers) };
        let key = (u64::from(names) << 32 | u64::from(labelled), state << 8 | u64::from(is_failed) << 4 | asked as u64);
        self.numbered(key, Class { attempt: Some(attempt), is_failed, asked })
    }

    fn numbered(&mut self, key: (u64, u64), class: Class<'a>) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.all.push(class);
            u32::try_from(self.all.len() - 1).expect("fewer classes than attempts")
        })
    }
}
