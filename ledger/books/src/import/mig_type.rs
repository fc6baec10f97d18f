//! MIG profiles in the type names of gres: `1g.10gb`, `nvidia_h200_nvl_4g.71gb`, `a100_1c.3g.20gb`.

/// A type name that says a MIG profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigType<'a> {
    /// What stands before the profile.
    pub model: Option<&'a str>,
    /// The profile, as written: `1g.10gb`, `1g.10gb+me`, `1c.3g.20gb`.
    pub profile: &'a str,
    /// Its compute slices; of a compute instance its own.
    pub compute_slices: u8,
    /// The compute slices of its card: 4 of an A30 or RTX PRO, else 7.
    pub card_slices: u8,
}

/// Splits a type name into model and profile; none where it names no profile.
pub fn split_mig_type(name: &str) -> Option<MigType<'_>> {
    let bytes = name.as_bytes();
    let at = (0..bytes.len()).find(|&i| is_profile(&bytes[i..]) && (i == 0 || !bytes[i - 1].is_ascii_digit()))?;
    let instance = bytes[at] - b'0';
    let (start, compute_slices) = match at.checked_sub(3).map(|i| (i, &bytes[i..at])) {
        Some((i, [c @ b'1'..=b'7', b'c', b'.'])) => (i, (c - b'0').min(instance)),
        _ => (at, instance),
    };
    let model = name[..start].trim_end_matches(['_', '-', '.', ' ']);
    // Source: NVIDIA's MIG user guide: an A30 (1g.6gb, 2g.12gb, 4g.24gb) and the RTX PRO cards (an RTX PRO 6000 has 4g.96gb)
    // are cut in four, all others in seven.
    let memory = &name[at + 3..];
    let four = [(1, "6gb"), (2, "12gb"), (4, "24gb"), (4, "96gb")];
    let is_cut_in_four = four.iter().any(|(g, gb)| *g == instance && memory.starts_with(gb))
        || model.to_ascii_lowercase().contains("rtx");
    Some(MigType {
        model: (!model.is_empty()).then_some(model),
        profile: &name[start..],
        compute_slices,
        card_slices: if is_cut_in_four { 4 } else { 7 },
    })
}

/// Whether `1g.10gb` stands at the front.
fn is_profile(text: &[u8]) -> bool {
    let [b'1'..=b'7', b'g', b'.', memory @ ..] = text else { return false };
    let digits = memory.iter().take_while(|c| c.is_ascii_digit()).count();
    digits > 0 && memory[digits..].starts_with(b"gb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, model: Option<&str>, profile: &str, compute_slices: u8, card_slices: u8) {
        let expected = MigType { model, profile, compute_slices, card_slices };
        assert_eq!(split_mig_type(name), Some(expected), "{name}");
    }

    #[test]
    fn a_profile_is_found_at_the_end_of_a_type_name() {
        check("1g.10gb", None, "1g.10gb", 1, 7);
        check("nvidia_h200_nvl_4g.71gb", Some("nvidia_h200_nvl"), "4g.71gb", 4, 7);
        check("a100_1c.3g.20gb", Some("a100"), "1c.3g.20gb", 1, 7);
        check("1g.10gb+me", None, "1g.10gb+me", 1, 7);
        check("a30_2g.12gb", Some("a30"), "2g.12gb", 2, 4);
        check("rtx_pro_6000_2g.48gb", Some("rtx_pro_6000"), "2g.48gb", 2, 4);
    }

    #[test]
    fn a_model_is_no_profile() {
        for name in ["a100", "rtx-6000.ada", "h100_80gb", "8g.10gb", "1g.gb", "g.5gb", "21g.5gb", ""] {
            assert_eq!(split_mig_type(name), None, "{name}");
        }
    }
}
