//! Handles: numbers that are never followed, so that a stale or foreign one is an error and no crash.

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A card, by its place in the scenario.
    Card(usize),
    /// A slice: its card, the layout it is of, its place in that.
    Slice { card: usize, layout: usize, slice: usize },
    /// A set of events, by its number.
    Set(usize),
    /// A sample of the performance monitor, by its number.
    Sample(usize),
}

/// Generation, kind and number as one number that is never null.
pub(crate) fn pack(generation: u16, named: Named) -> usize {
    let (kind, a, b, c) = match named {
        Named::Card(card) => (1, card, 0, 0),
        Named::Slice { card, layout, slice } => (2, card, layout, slice),
        Named::Set(set) => (3, set, 0, 0),
        Named::Sample(sample) => (4, sample & 0xff, sample >> 8, 0),
    };
    (usize::from(generation) << 44) | (kind << 40) | ((c & 0xff) << 32) | ((b & 0xffff) << 16) | (a & 0xffff)
}

/// What a number names, and of which generation. None for a number that no handle is.
pub(crate) fn unpack(handle: usize) -> Option<(u16, Named)> {
    let generation = u16::try_from(handle >> 44).ok()?;
    let (a, b, c) = (handle & 0xffff, (handle >> 16) & 0xffff, (handle >> 32) & 0xff);
    let named = match (handle >> 40) & 0xf {
        1 => Named::Card(a),
        2 => Named::Slice { card: a, layout: b, slice: c },
        3 => Named::Set(a),
        4 => Named::Sample(a | b << 8),
        _ => return None,
    };
    Some((generation, named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_went_out() {
        for named in [Named::Card(7), Named::Slice { card: 3, layout: 2, slice: 6 }, Named::Set(1), Named::Sample(300)]
        {
            assert_eq!(unpack(pack(9, named)), Some((9, named)));
            assert_ne!(pack(0, named), 0);
        }
        assert_eq!(unpack(0), None);
    }
}
