//! Which cards have a table, and what their profiles are called.

use super::{Axis, Offer, Placement, Refusal, Shape, State};
use std::collections::BTreeMap;
use std::fmt;

/// A card whose layouts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// A30, 24 GB.
    A30,
    /// A100, 40 GB.
    A100Of40,
    /// A100, 80 GB.
    A100Of80,
    /// H100, 80 GB.
    H100Of80,
    /// H200, 141 GB.
    H200Of141,
    /// B200, 180 GB.
    B200Of180,
}

/// A driver's version, such as 570.133. What comes after the second number plays no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion(pub u16, pub u16);

impl DriverVersion {
    /// Reads `570.133.20` and the like. None for what isn't two numbers and a dot.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('.').map(|part| part.parse().ok());
        Some(Self(parts.next()??, parts.next()??))
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 == 0 { write!(f, "R{}", self.0) } else { write!(f, "{}.{}", self.0, self.1) }
    }
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::A30, Self::A100Of40, Self::A100Of80, Self::H100Of80, Self::H200Of141, Self::B200Of180];

    /// The card of a driver's name and memory. Unit: MiB, all the card has.
    ///
    /// Both have to agree: an H100 NVL, a GH200 or an A100 of 64 GB is another card with other profiles, and isn't guessed at.
    /// The memory may be up to a tenth under the nominal one, which drivers and error correction take.
    pub fn recognise(card: &str, memory_mib: u64) -> Result<Self, Refusal> {
        let mut words = card.split(|c: char| !c.is_ascii_alphanumeric());
        let has = |word: &str| words.clone().any(|w| w.eq_ignore_ascii_case(word));
        let found = Self::ALL.into_iter().find(|model| {
            let (name, nominal_mib) = model.nominal();
            has(name) && memory_mib <= nominal_mib && memory_mib * 10 >= nominal_mib * 9
        });
        // An H100 NVL of 94 GB fails by its memory; the name alone would do for one whose memory a hypervisor cut.
        let is_other = has("NVL") && has("H100") || words.any(|w| w.eq_ignore_ascii_case("vGPU"));
        found.filter(|_| !is_other).ok_or_else(|| Refusal::MigTableMissing { card: card.into(), memory_mib })
    }

    /// Its axis.
    pub const fn axis(self) -> Axis {
        match self {
            Self::A30 => Axis::Four,
            Self::A100Of40 | Self::A100Of80 | Self::H100Of80 | Self::H200Of141 | Self::B200Of180 => Axis::Eight,
        }
    }

    /// Whether its starts were never seen in a listing of a real card, but taken from the others with eight slices.
    pub const fn is_inferred(self) -> bool {
        match self {
            Self::A30 | Self::A100Of40 | Self::A100Of80 | Self::H100Of80 => false,
            Self::H200Of141 | Self::B200Of180 => true,
        }
    }

    /// What NVIDIA calls a shape on this card, such as `1g.10gb+me`. None where the card hasn't it.
    ///
    /// The figure in it is a name: what an instance really has is less ([`super::smallest_for`]).
    pub fn profile_name(self, shape: Shape) -> Option<String> {
        let (compute, _) = self.axis().slices(shape)?;
        let media = if shape.has_media() { "+me" } else { "" };
        Some(format!("{compute}g.{}gb{media}", self.name_gb(shape)?))
    }

    /// The shape of a profile's name on this card, in the ways it is written: `1g.10gb`, `MIG 1g.10gb`, `mig-1g.10gb`, `1g.10gb.me`.
    pub fn shape_named(self, profile: &str) -> Option<Shape> {
        let lower = profile.trim().to_ascii_lowercase();
        let bare = lower.strip_prefix("mig").map_or(lower.as_str(), |rest| rest.trim_start_matches(['-', ' ', '_']));
        let wanted = bare.replace(".me", "+me");
        self.axis().shapes().find(|shape| self.profile_name(*shape).as_deref() == Some(&wanted))
    }

    /// A card with these on it, by profile and start as the driver tells them. Errors: a profile that the card hasn't, or a layout that can't be.
    pub fn state_of<'a>(self, instances: impl IntoIterator<Item = (&'a str, u8)>) -> Result<State, Refusal> {
        instances.into_iter().try_fold(State::empty(self.axis()), |state, (profile, start)| {
            let shape = self.shape_named(profile).ok_or_else(|| Refusal::UnknownProfile(profile.into()))?;
            state.with(Placement { shape, start })
        })
    }

    /// The first driver with a shape. R525 for H100 and H200 is about right and worth a look at the card itself.
    pub const fn first_driver(self, shape: Shape) -> DriverVersion {
        match (self, shape) {
            (Self::A30, Shape::TwoGMedia) => DriverVersion(525, 0),
            (Self::A30, Shape::OneGMedia) => DriverVersion(470, 0),
            (Self::A30 | Self::A100Of40 | Self::A100Of80, _) => DriverVersion(450, 0),
            (Self::H100Of80 | Self::H200Of141, _) => DriverVersion(525, 0),
            (Self::B200Of180, _) => DriverVersion(570, 133),
        }
    }

    /// The shapes that a node's driver has for this card.
    pub fn offer(self, driver: DriverVersion) -> Offer {
        Offer::of(self.axis().shapes().filter(|shape| self.first_driver(*shape) <= driver))
    }

    /// Whether a shape is offered. Errors: it isn't this card's, or the driver is too old.
    pub fn check_driver(self, shape: Shape, has: DriverVersion) -> Result<(), Refusal> {
        self.axis().slices(shape).ok_or(Refusal::NoSuchShape(shape))?;
        let needs = self.first_driver(shape);
        if has < needs { Err(Refusal::DriverTooOld { shape, needs, has }) } else { Ok(()) }
    }

    /// Holds the table against what a card lists of itself (`nvidia-smi mig -lgipp`): starts and size by profile number.
    ///
    /// Errors: the first shape that differs; the card isn't planned then. Profiles that the table hasn't, and shapes that the card doesn't
    /// list, are no error: drivers offer more and less.
    pub fn check_listing(self, listing: &BTreeMap<u8, Vec<(u8, u8)>>) -> Result<(), Refusal> {
        for row in self.axis().rows() {
            let Some(listed) = listing.get(&row.profile_id) else { continue };
            let mut listed = listed.clone();
            listed.sort_unstable();
            let expected: Vec<_> = row.starts.iter().map(|start| (*start, row.size)).collect();
            if listed != expected {
                return Err(Refusal::MigTableDiffers { shape: row.shape, listed, expected });
            }
        }
        Ok(())
    }

    /// The word in the driver's name, and the memory the card is sold with. Unit: MiB.
    const fn nominal(self) -> (&'static str, u64) {
        match self {
            Self::A30 => ("A30", 24 * 1024),
            Self::A100Of40 => ("A100", 40 * 1024),
            Self::A100Of80 => ("A100", 80 * 1024),
            Self::H100Of80 => ("H100", 80 * 1024),
            Self::H200Of141 => ("H200", 141 * 1024),
            Self::B200Of180 => ("B200", 180 * 1024),
        }
    }

    /// The figure in a profile's name. Unit: GB, rounded as NVIDIA does.
    const fn name_gb(self, shape: Shape) -> Option<u16> {
        let [single, double, half, whole] = match self {
            Self::A30 => [6, 12, 12, 24],
            Self::A100Of40 => [5, 10, 20, 40],
            Self::A100Of80 | Self::H100Of80 => [10, 20, 40, 80],
            Self::H200Of141 => [18, 35, 71, 141],
            Self::B200Of180 => [23, 45, 90, 180],
        };
        match (self, shape) {
            (_, Shape::OneG | Shape::OneGMedia) => Some(single),
            (Self::A30, Shape::FourG) => Some(whole),
            (Self::A30, Shape::TwoG | Shape::TwoGMedia) => Some(double),
            (Self::A30, Shape::OneGDouble | Shape::ThreeG | Shape::SevenG) | (_, Shape::TwoGMedia) => None,
            (_, Shape::OneGDouble | Shape::TwoG) => Some(double),
            (_, Shape::ThreeG | Shape::FourG) => Some(half),
            (_, Shape::SevenG) => Some(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and memories as drivers give them.
    #[test]
    fn a_card_is_recognised_by_its_name_and_its_memory() {
        for (name, memory_mib, model) in [
            ("NVIDIA A30", 24_576, Model::A30),
            ("NVIDIA A100-SXM4-40GB", 40_960, Model::A100Of40),
            ("A100-PCIE-40GB", 40_536, Model::A100Of40),
            ("NVIDIA A100 80GB PCIe", 81_920, Model::A100Of80),
            ("NVIDIA H100 80GB HBM3", 81_559, Model::H100Of80),
            ("NVIDIA H100 PCIe", 81_559, Model::H100Of80),
            ("NVIDIA H200", 143_771, Model::H200Of141),
            ("NVIDIA B200", 183_359, Model::B200Of180),
        ] {
            assert_eq!(Model::recognise(name, memory_mib).unwrap(), model, "{name}");
        }
    }

    /// Rule 11.
    #[test]
    fn a_card_of_another_name_or_memory_is_not_guessed_at() {
        for (name, memory_mib) in [
            ("NVIDIA H100 NVL", 95_830),
            ("NVIDIA H100 NVL", 81_559),
            ("NVIDIA GH200 480GB", 97_871),
            ("NVIDIA GH200 144G HBM3e", 143_771),
            ("NVIDIA GB200", 189_471),
            ("NVIDIA B300 SXM6 AC", 275_040),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97_887),
            ("NVIDIA A100-SXM-64GB", 65_536),
            ("Tesla T4", 15_360),
            ("NVIDIA H100 80GB HBM3", 0),
        ] {
            let refusal = Model::recognise(name, memory_mib).unwrap_err();
            assert_eq!(refusal.code(), "mig_table_missing", "{name}");
        }
        let refusal = Model::recognise("NVIDIA GB200", 189_471).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "no MIG table for \"NVIDIA GB200\" with 189471 MiB: its layouts are not planned"
        );
    }

    /// The table of NVIDIA's guide, a line a card.
    #[test]
    fn profiles_are_called_as_in_nvidias_guide() {
        for (model, names) in [
            (Model::A30, "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"),
            (Model::A100Of40, "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"),
            (Model::A100Of80, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
            (Model::H100Of80, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"),
            (Model::H200Of141, "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"),
            (Model::B200Of180, "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"),
        ] {
            let all: Vec<_> = model.axis().shapes().map(|shape| model.profile_name(shape).unwrap()).collect();
            assert_eq!(all.join(" "), names);
            for shape in model.axis().shapes() {
                assert_eq!(model.shape_named(&model.profile_name(shape).unwrap()), Some(shape));
            }
        }
        assert_eq!(Model::A100Of80.shape_named("MIG 1g.10gb.me"), Some(Shape::OneGMedia));
        assert_eq!(Model::A100Of80.shape_named("mig-1g.20gb"), Some(Shape::OneGDouble));
        // The same words are a double slice on the smaller card.
        assert_eq!(Model::A100Of40.shape_named("1g.10gb"), Some(Shape::OneGDouble));
        assert_eq!(Model::A30.profile_name(Shape::ThreeG), None);
    }

    /// The listing of `nvidia-smi mig -lgi` in dra-driver-nvidia-gpu#933: 1g.10gb at 0, 1 and 5.
    #[test]
    fn a_cards_own_listing_is_read_as_it_stands() {
        let state = Model::H100Of80.state_of([("MIG 1g.10gb", 0), ("MIG 1g.10gb", 1), ("MIG 1g.10gb", 5)]).unwrap();
        assert_eq!((state.memory_mask(), state.free_compute(), state.count(Shape::OneG)), (0b10_0011, 4, 3));
        assert_eq!(Model::H100Of80.state_of([("1g.5gb", 0)]).unwrap_err().code(), "mig_unknown_profile");
    }

    /// Rule 5.
    #[test]
    fn an_old_driver_offers_less() {
        let old = Model::A30.offer(DriverVersion(470, 57));
        assert!(old.has(Shape::OneGMedia) && !old.has(Shape::TwoGMedia));
        assert_eq!(Model::B200Of180.offer(DriverVersion(570, 124)), Offer::NONE);
        let refusal = Model::B200Of180.check_driver(Shape::OneG, DriverVersion(570, 124)).unwrap_err();
        assert_eq!(refusal.to_string(), "1g needs driver 570.133, the node has 570.124");
        assert!(Model::H100Of80.check_driver(Shape::SevenG, DriverVersion(535, 104)).is_ok());
        assert_eq!(DriverVersion::parse("570.133.20"), Some(DriverVersion(570, 133)));
        assert_eq!(DriverVersion::parse("n/a"), None);
    }

    /// Rule 6: the mock of go-nvml has a 3g of three slices on an H200; a real H100 lists 3g as 0:4 and 4:4.
    #[test]
    fn a_listing_that_differs_from_the_table_stops_the_planning() {
        let real = BTreeMap::from([(9, vec![(4, 4), (0, 4)]), (5, vec![(0, 4)]), (66, vec![(0, 1)])]);
        assert!(Model::H200Of141.check_listing(&real).is_ok());
        let mock = BTreeMap::from([(9, vec![(0, 3), (3, 3)])]);
        assert_eq!(Model::H200Of141.check_listing(&mock).unwrap_err().code(), "mig_table_differs");
    }
}
