//! Bars beside their names, drawn as SVG without script (`templates/bars.html`).

/// Height of a bar with its gap, and where bars begin and end, in the drawing's own units.
const STEP: usize = 22;
const LEFT: i128 = 190;
const RIGHT: i128 = 560;
/// Letters of a name that fit before the bar.
const LETTERS: usize = 26;

/// What a bar is drawn of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Its name.
    pub label: String,
    /// How much it is, in the unit of all.
    pub size: i128,
    /// The same as people read it.
    pub amount: String,
    /// Beside that in grey, such as its part of a total; may be empty.
    pub share: String,
}

/// The drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bars {
    /// What it shows, for who can't see it.
    pub about: String,
    /// In the order in which they were given.
    pub bars: Vec<Bar>,
    /// Height of the drawing.
    pub height: usize,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its name, cut where it is too long.
    pub label: String,
    /// Its amount.
    pub amount: String,
    /// What stands beside the amount in grey.
    pub share: String,
    /// Where its text stands.
    pub text_y: usize,
    /// Its upper edge.
    pub y: usize,
    /// Where all bars begin.
    pub x: i128,
    /// How long it is: nothing for an amount below zero.
    pub width: i128,
}

impl Bars {
    /// A bar for each; none where there is only one, or nothing above zero.
    pub fn of(about: &str, measured: Vec<Measured>) -> Option<Self> {
        let largest = measured.iter().map(|one| one.size).max().filter(|largest| *largest > 0)?;
        let bars = measured.into_iter().enumerate().map(|(i, one)| Bar {
            label: shortened(&one.label),
            amount: one.amount,
            share: one.share,
            text_y: i * STEP + 14,
            y: i * STEP + 3,
            x: LEFT,
            width: one.size.max(0) * (RIGHT - LEFT) / largest,
        });
        let bars: Vec<Bar> = bars.collect();
        (bars.len() > 1).then(|| Self { about: about.to_owned(), height: bars.len() * STEP, bars })
    }
}

/// A name cut to what fits.
pub fn shortened(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    name.chars().take(LETTERS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(shortened("vision"), "vision");
        assert_eq!(shortened(&"卡".repeat(40)).chars().count(), LETTERS);
    }

    /// By hand: the largest takes all of 370 units, half of it 185, a loss none.
    #[test]
    fn the_largest_bar_is_as_long_as_there_is_room() {
        let one = |size| Measured { label: "a".into(), size, amount: String::new(), share: String::new() };
        let widths = |sizes: &[i128]| {
            let bars = Bars::of("x", sizes.iter().copied().map(one).collect())?;
            Some(bars.bars.iter().map(|bar| bar.width).collect::<Vec<_>>())
        };
        assert_eq!(widths(&[4, 2, -1]), Some(vec![370, 185, 0]));
        assert_eq!(widths(&[4]), None);
        assert_eq!(widths(&[0, 0]), None);
    }
}
