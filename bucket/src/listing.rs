//! What lies in a bucket, page by page.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the bucket's order.
    pub objects: Vec<Listed>,
    /// Asks for the next page; none: this was the last.
    pub next: Option<String>,
}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// How large it is. Unit: bytes.
    pub bytes: u64,
}

/// Why an answer is no listing.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("what answers is no list of a bucket: {0}")]
pub struct ListingError(String);

impl Listing {
    /// Reads an answer to [`crate::Bucket::list`]. Errors: it is something else, or only part of one.
    pub fn parse(body: &str) -> Result<Self, ListingError> {
        let mut page = Page::default();
        let mut reader = Reader::from_str(body);
        let mut inside: Vec<String> = Vec::new();
        let mut text = String::new();
        loop {
            match reader.read_event().map_err(|error| ListingError(error.to_string()))? {
                Event::Start(start) => {
                    inside.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                    text.clear();
                    if inside[..] == ["ListBucketResult", "Contents"] {
                        page.objects.push(Listed::default());
                    }
                }
                Event::End(_) => {
                    page.take(&inside, &text)?;
                    inside.pop();
                    page.is_whole |= inside.is_empty();
                    text.clear();
                }
                Event::Text(part) => text.push_str(&String::from_utf8_lossy(&part)),
                Event::CData(part) => text.push_str(&String::from_utf8_lossy(&part)),
                Event::GeneralRef(reference) => text.push(character(&reference)?),
                Event::Eof => break,
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        page.finished()
    }
}

/// What was read so far.
#[derive(Default)]
struct Page {
    objects: Vec<Listed>,
    next: Option<String>,
    is_truncated: bool,
    is_encoded: bool,
    is_whole: bool,
}

impl Page {
    fn take(&mut self, inside: &[String], text: &str) -> Result<(), ListingError> {
        let [root, rest @ ..] = inside else { return Ok(()) };
        if root != "ListBucketResult" {
            return Err(ListingError(format!("it is <{root}>")));
        }
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        match (&rest[..], self.objects.last_mut()) {
            (["Contents", "Key"], Some(object)) => text.clone_into(&mut object.key),
            (["Contents", "Size"], Some(object)) => {
                object.bytes = text.trim().parse().map_err(|_| ListingError("a size is no number".to_owned()))?;
            }
            (["IsTruncated"], _) => self.is_truncated = text.trim() == "true",
            (["EncodingType"], _) => self.is_encoded = text.trim() == "url",
            (["NextContinuationToken"], _) => self.next = Some(text.to_owned()).filter(|token| !token.is_empty()),
            _ => {}
        }
        Ok(())
    }

    fn finished(mut self) -> Result<Listing, ListingError> {
        if !self.is_whole {
            return Err(ListingError("it ends in the middle".to_owned()));
        }
        if self.is_truncated && self.next.is_none() {
            return Err(ListingError("there is more, and it doesn't say how to ask for it".to_owned()));
        }
        if self.is_encoded {
            for object in &mut self.objects {
                object.key = decoded(&object.key).ok_or_else(|| ListingError("a key is no text".to_owned()))?;
            }
        }
        Ok(Listing { objects: self.objects, next: self.next.filter(|_| self.is_truncated) })
    }
}

/// `&amp;`, `&#38;` and the like.
fn character(reference: &BytesRef<'_>) -> Result<char, ListingError> {
    let odd = || ListingError("it has a reference to what it doesn't say".to_owned());
    if let Some(character) = reference.resolve_char_ref().map_err(|_| odd())? {
        return Ok(character);
    }
    Ok(match &**reference {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        _ => return Err(odd()),
    })
}

/// As forms are encoded: Amazon and MinIO write a space as `+`, others as `%20`, and all of them a plus as `%2B`.
fn decoded(key: &str) -> Option<String> {
    let mut out = Vec::with_capacity(key.len());
    let mut bytes = key.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(key: &str, bytes: u64) -> Listed {
        Listed { key: key.to_owned(), bytes }
    }

    #[test]
    fn amazons_example_of_a_page_is_read() {
        // Amazon S3 API Reference, ListObjectsV2, "Sample response for general purpose buckets: Using a continuation token".
        let body = r#"<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name>
  <Prefix></Prefix>
  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <KeyCount>1</KeyCount>
  <MaxKeys>1000</MaxKeys>
  <IsTruncated>true</IsTruncated>
  <Contents>
    <Key>happyface.jpg</Key>
    <LastModified>2014-11-21T19:40:05.000Z</LastModified>
    <ETag>"70ee1738b6b21e2c8a43f3a5ab0eee71"</ETag>
    <Size>11</Size>
    <StorageClass>STANDARD</StorageClass>
  </Contents>
</ListBucketResult>"#;
        let page = Listing::parse(body).unwrap();
        assert_eq!(page.objects, [listed("happyface.jpg", 11)]);
        assert_eq!(page.next.as_deref(), Some("1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="));
    }

    #[test]
    fn odd_keys_come_back_as_they_were_put() {
        let page = |encoding: &str, keys: &[&str]| {
            let contents: String = keys.iter().map(|key| format!("<Contents><Key>{key}</Key></Contents>")).collect();
            Listing::parse(&format!("<ListBucketResult>{encoding}{contents}</ListBucketResult>"))
        };
        let keys = |page: Result<Listing, _>| page.unwrap().objects.into_iter().map(|o| o.key).collect::<Vec<_>>();
        let url = "<EncodingType>url</EncodingType>";
        assert_eq!(keys(page(url, &["a+b%2Bc%2F%C3%A4", "a%20b"])), ["a b+c/ä", "a b"]);
        assert_eq!(keys(page("", &["a+b%20c&amp;&#228;"])), ["a+b%20c&ä"]);
        for odd in ["%", "%2", "%zz", "%FF"] {
            assert!(page(url, &[odd]).is_err(), "{odd}");
        }
        assert_eq!(page("", &[]).unwrap(), Listing::default());
    }

    #[test]
    fn what_is_no_list_or_half_of_one_is_never_an_empty_bucket() {
        for body in [
            "",
            "Welcome",
            "<html></html>",
            "<ListBucketResult><Contents><Key>a</Key></Contents>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Contents><Size>many</Size></Contents></ListBucketResult>",
        ] {
            assert!(Listing::parse(body).is_err(), "{body}");
        }
    }
}
