//! Segments and files in a bucket that speaks S3: where they lie, how requests are signed, and what the answers say.
//!
//! A collector puts segments there and the service takes them from there; both need the same keys and the same signature, and each has an HTTP client
//! of its own. So this crate makes [`Request`]s and reads answers, and sends nothing.
//!
//! ```text
//! s3://BUCKET/PREFIX/incoming/NODE/SEGMENT            waits to be taken in
//! s3://BUCKET/PREFIX/incoming/NODE/refused/SEGMENT    was refused, and is kept aside
//! s3://BUCKET/PREFIX/FILE                             was delivered for others
//! ```
//!
//! Start at [`Bucket`]. Does not: open sockets, read a clock (times are arguments), know what is in a segment. It reads one file, of [`Credentials`].

mod credentials;
mod fault;
mod keys;
mod listing;
mod place;
mod request;
mod signature;

pub use credentials::{Credentials, CredentialsError, CredentialsSource};
pub use fault::Fault;
pub use keys::INCOMING;
pub use listing::{Listed, Listing, ListingError};
pub use place::{Bucket, Settings};
pub use request::Request;
