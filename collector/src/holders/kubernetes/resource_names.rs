//! Which resources are cards.

/// Names of the resources whose devices are cards or parts of cards; `*` stands for any text.
///
/// A setting, since sites rename resources (`nvidia.com/gpu-a100`), and since what other plugins give out under ids of the same look is none
/// of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceNames(Vec<String>);

impl ResourceNames {
    /// Those of a list.
    pub fn new(patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(patterns.into_iter().map(Into::into).collect())
    }

    /// Whether a resource is one of them.
    pub fn has(&self, resource: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, resource))
    }
}

impl Default for ResourceNames {
    /// What NVIDIA's plugin gives out by itself: whole cards, shared ones, instances.
    fn default() -> Self {
        Self::new(["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"])
    }
}

/// Whether a text is what a pattern with `*` says.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let parts: Vec<&str> = rest.split('*').collect();
    let (last, middle) = parts.split_last().expect("a split has at least one part");
    for part in middle {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_the_rest_for_itself() {
        let names = ResourceNames::default();
        for ours in ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.5gb.me"] {
            assert!(names.has(ours), "{ours}");
        }
        for other in ["nvidia.com/gpux", "amd.com/gpu", "nvidia.com/gpumem", "rdma/hca", "nvidia.com/mi"] {
            assert!(!names.has(other), "{other}");
        }
        let names = ResourceNames::new(["*/gpu-*-x"]);
        assert!(names.has("site.org/gpu-a100-x") && !names.has("site.org/gpu-a100"));
        // What stands before the star and what stands behind it may not be the same letters.
        assert!(!ResourceNames::new(["ab*ba"]).has("aba"));
    }
}
