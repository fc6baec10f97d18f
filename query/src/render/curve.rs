//! A line through figures that follow each other in time, drawn as SVG without script (`templates/curve.html`).

use super::bars::Measured;

/// Width and height of where the line goes, in the drawing's own units, and room around it for texts.
const WIDTH: i128 = 640;
const HEIGHT: i128 = 130;
const LEFT: i128 = 30;
const TOP: i128 = 24;

/// The drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// What it shows, for who can't see it.
    pub about: String,
    /// The line, as a polyline takes it.
    pub points: String,
    /// Where its figures stand.
    pub dots: Vec<Dot>,
    /// Where zero is.
    pub zero_y: i128,
}

/// One figure of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dot {
    /// Its name.
    pub label: String,
    /// Its amount.
    pub amount: String,
    /// Where it stands.
    pub x: i128,
    /// Where it stands, from above.
    pub y: i128,
    /// Where its amount is written.
    pub amount_y: i128,
    /// Which end of its texts stands at it, as `text-anchor` takes it: those of the first and the last go inwards, since the drawing ends beside them.
    pub anchor: &'static str,
}

impl Curve {
    /// A line through all of them, from zero up; none where there are not two, or nothing above zero.
    pub fn of(about: &str, measured: Vec<Measured>) -> Option<Self> {
        let largest = measured.iter().map(|one| one.size).max().filter(|largest| *largest > 0)?;
        let gaps = i128::try_from(measured.len()).expect("few") - 1;
        if gaps < 1 {
            return None;
        }
        let dots: Vec<Dot> = (0..)
            .zip(measured)
            .map(|(i, one)| {
                let y = TOP + HEIGHT - one.size.max(0) * HEIGHT / largest;
                let anchor = match i {
                    0 => "start",
                    last if last == gaps => "end",
                    _ => "middle",
                };
                Dot { label: one.label, amount: one.amount, x: LEFT + i * WIDTH / gaps, y, amount_y: y - 8, anchor }
            })
            .collect();
        let points: Vec<String> = dots.iter().map(|dot| format!("{},{}", dot.x, dot.y)).collect();
        Some(Self { about: about.to_owned(), points: points.join(" "), dots, zero_y: TOP + HEIGHT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the largest is at the top, 24; half of it 65 units below; 640 units over two gaps are 320 each, from 30 on.
    #[test]
    fn a_line_rises_to_the_largest_figure() {
        let one = |size| Measured { label: "a".into(), size, amount: String::new(), share: String::new() };
        let points = |sizes: &[i128]| Curve::of("x", sizes.iter().copied().map(one).collect()).map(|c| c.points);
        assert_eq!(points(&[0, 2, 4]).as_deref(), Some("30,154 350,89 670,24"));
        assert_eq!(points(&[4]), None);
    }

    /// A text of the first figure ends where the drawing begins if it stands in the middle of it.
    #[test]
    fn texts_at_both_ends_go_inwards() {
        let one =
            |size| Measured { label: "2026-03".into(), size, amount: "123,456.7890".into(), share: String::new() };
        let curve = Curve::of("x", [1, 2, 3].map(one).to_vec()).unwrap();
        let anchors: Vec<&str> = curve.dots.iter().map(|dot| dot.anchor).collect();
        assert_eq!(anchors, ["start", "middle", "end"]);
    }
}
