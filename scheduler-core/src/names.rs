//! Who and what a decision speaks of: jobs, queues, hosts, tenants and card models, each a type of its own.

use std::fmt;

use cardhour_domain::Name;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Name);

        impl $name {
            /// As its system writes it.
            pub fn new(text: &str) -> Self {
                Self(text.into())
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    )*};
}

names! {
    /// A job, running or waiting, as its scheduler names it. Unique in a snapshot.
    JobName;
    /// A node of the quota tree: an org, a project, a user, or a queue of a scheduler. Unique in a snapshot.
    QueueName;
    /// A machine with cards.
    HostName;
    /// A card model, as the quota names it.
    Model;
    /// Those who may share a card by time-slicing. Two tenants never do.
    Tenant;
}
