//! Names that are near a mistyped one: those that few strokes would make of it.
//!
//! Start at [`nearest`]. Does not: decide that a name is wrong, since a project may be new.

use cardhour_domain::Name;

/// So many are worth a look.
const MOST: usize = 3;

/// A name that is part of another has to be so long, or it would be part of many. Unit: letters.
const LEAST_PART: usize = 3;

/// Of the known names those that are nearest to a name, nearest first; none where none is near. Upper and lower case are alike, and a part of a name, such
/// as `h200` of `NVIDIA H200`, is as near as one stroke.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n Name>) -> Vec<Name> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    // A third of its letters may be wrong, and of a short one a single one.
    let most = (name.len() / 3).max(1);
    let mut near: Vec<(usize, &Name)> = known
        .into_iter()
        .map(|known| {
            let lower = known.to_lowercase();
            let is_part = name.len() >= LEAST_PART && lower.contains(&name.iter().collect::<String>());
            let strokes = strokes(&name, &lower.chars().collect::<Vec<_>>());
            (if is_part { strokes.min(1) } else { strokes }, known)
        })
        .filter(|(strokes, _)| *strokes <= most)
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, known)| known.clone()).collect()
}

/// How many letters are put in, left out, put for another, or two beside each other turned round: optimal string alignment.
fn strokes(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let put = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = put.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// `did you mean vision or visual?`; none where none is near.
pub fn question<'n>(name: &str, known: impl IntoIterator<Item = &'n Name>) -> Option<String> {
    let near = nearest(name, known);
    let (last, before) = near.split_last()?;
    let before: Vec<&str> = before.iter().map(|name| &**name).collect();
    Some(match before.is_empty() {
        true => format!("did you mean {last}?"),
        false => format!("did you mean {} or {last}?", before.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: visoin → vision turns two letters; vison lacks one; speech is far. Of a short name one letter may be wrong.
    #[test]
    fn a_slip_of_few_strokes_finds_the_name() {
        let known: Vec<Name> = ["vision", "visual", "speech", "nlp"].map(Name::from).to_vec();
        assert_eq!(nearest("visoin", &known), [Name::from("vision")]);
        assert_eq!(nearest("VISION", &known), [Name::from("vision")]);
        assert_eq!(nearest("nlq", &known), [Name::from("nlp")]);
        assert!(nearest("robotics", &known).is_empty());
        let models: Vec<Name> = ["NVIDIA H200", "NVIDIA L40S"].map(Name::from).to_vec();
        assert_eq!(nearest("h200", &models), [Name::from("NVIDIA H200")]);
        assert!(nearest("NV", &models).is_empty(), "two letters are part of too much");
        assert_eq!(question("visuon", &known).unwrap(), "did you mean vision or visual?");
        assert_eq!(question("xyz", &known), None);
    }

    #[test]
    fn strokes_are_counted_as_a_hand_would() {
        let strokes = |a: &str, b: &str| super::strokes(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        // Levenshtein's own example; with two letters turned round one less.
        assert_eq!(strokes("kitten", "sitting"), 3);
        assert_eq!((strokes("ca", "ac"), strokes("", "abc"), strokes("abc", "abc")), (1, 3, 0));
    }
}
