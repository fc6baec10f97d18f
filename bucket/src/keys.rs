//! What segments are called in a bucket.

use crate::Bucket;
use cardhour_domain::SegmentName;

/// What stands before the node, as in the ledger's folder.
pub const INCOMING: &str = "incoming";
/// What stands between a node and a segment that was refused.
const REFUSED: &str = "refused";

impl Bucket {
    /// The key under which a node puts a segment. `node` has no slash.
    pub fn key(&self, node: &str, segment: &SegmentName) -> String {
        format!("{}{node}/{segment}", self.waiting())
    }

    /// The key under which a refused segment is kept aside.
    pub fn refused_key(&self, node: &str, segment: &SegmentName) -> String {
        format!("{}{node}/{REFUSED}/{segment}", self.waiting())
    }

    /// What the keys of all that waits begin with.
    pub fn waiting(&self) -> String {
        format!("{}{INCOMING}/", self.prefix)
    }

    /// The key of a file that is put there for others, under a name without a slash.
    pub fn file_key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Which node's which segment a key is; none: something else, which is left alone.
    pub fn segment_of<'k>(&self, key: &'k str) -> Option<(&'k str, SegmentName)> {
        let (node, name) = key.strip_prefix(&self.waiting())?.split_once('/')?;
        let segment = SegmentName::parse(name).ok()?;
        (!node.is_empty()).then_some((node, segment))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bucket, Settings};
    use cardhour_domain::{SegmentName, Stream};

    #[test]
    fn a_key_says_which_segment_it_is_and_nothing_else_passes() {
        let bucket = |place: &str| Bucket::new(&Settings { bucket: place.into(), ..Settings::default() }).unwrap();
        let segment = SegmentName::new(7, 42, Stream::Watches);
        for place in ["s3://pool", "s3://pool/a/b"] {
            let bucket = bucket(place);
            for node in ["gpu01", "node 1+ä&%2F", "refused"] {
                let key = bucket.key(node, &segment);
                assert_eq!(bucket.segment_of(&key), Some((node, segment.clone())));
                assert_eq!(bucket.segment_of(&bucket.refused_key(node, &segment)), None);
            }
            for odd in ["", "incoming/", "incoming/gpu01/", "incoming/gpu01/x.parquet", "other/incoming/gpu01/x"] {
                assert_eq!(bucket.segment_of(odd), None, "{odd}");
            }
        }
        let text = "00000000000000000000000000000007-000000000042.watches.parquet";
        assert_eq!(bucket("s3://pool/a").key("gpu01", &segment), format!("a/incoming/gpu01/{text}"));
        assert_eq!(bucket("s3://pool/a").file_key("b.csv"), "a/b.csv");
        assert_eq!(bucket("s3://pool").file_key("b.csv"), "b.csv");
        assert_eq!(bucket("s3://pool").segment_of(&format!("incoming//{text}")), None);
        assert_eq!(bucket("s3://pool/a").segment_of(&format!("incoming/gpu01/{text}")), None);
    }
}
