//! Who pays, by the rules of the site.
