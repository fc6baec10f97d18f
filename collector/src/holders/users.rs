//! Names of users.
//!
//! Asked of the system as `getent` does it, by the command itself: names may come from a directory over the network that hangs, and a
//! command can be ended.

use cardhour_domain::Name;
use cardhour_reach::command;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// Users of one node; more are asked anew each time.
const MOST_USERS: usize = 4096;

/// How often a user who had no name is asked for again. Unit: looks.
const ASK_AGAIN_LOOKS: u32 = 60;

/// Names by number, each asked once.
#[derive(Debug)]
pub struct Users {
    getent: PathBuf,
    timeout: Duration,
    known: HashMap<u32, Known>,
}

#[derive(Debug)]
enum Known {
    Named(Name),
    /// For so many looks more.
    Unnamed(u32),
}

impl Users {
    /// With the path of `getent` and how long it may take.
    pub fn new(getent: PathBuf, timeout: Duration) -> Self {
        Self { getent, timeout, known: HashMap::new() }
    }

    /// The name of a user; none where the system knows none, or didn't say in time.
    pub fn name(&mut self, uid: u32) -> Option<Name> {
        match self.known.get_mut(&uid) {
            Some(Known::Named(name)) => return Some(name.clone()),
            Some(Known::Unnamed(left)) if *left > 0 => {
                *left -= 1;
                return None;
            }
            _ => {}
        }
        let answer = command::run(&self.getent, &["passwd", &uid.to_string()], &[], self.timeout);
        let name = answer.ok().and_then(|line| line.split(':').next().filter(|name| !name.is_empty()).map(Name::from));
        if self.known.len() >= MOST_USERS {
            self.known.clear();
        }
        self.known.insert(uid, name.clone().map_or(Known::Unnamed(ASK_AGAIN_LOOKS), Known::Named));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_a_number_nobody_has_has_none() {
        let mut users = Users::new("getent".into(), Duration::from_secs(20));
        assert_eq!(users.name(0).as_deref(), Some("root"));
        assert_eq!(users.name(3_999_999_999), None);
        let mut missing = Users::new("/nonexistent/getent".into(), Duration::from_secs(1));
        assert_eq!(missing.name(0), None);
    }
}
