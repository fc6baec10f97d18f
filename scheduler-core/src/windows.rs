//! Hosts that come and go with a window of the day.
//!
//! A closed window is usable by nobody. An open one is given only to jobs that accept to lose it, and those are steered to it, so that hosts that stay are kept for the others.

use crate::names::HostName;
use crate::snapshot::{Host, Window};

/// Whether a job may be placed on a host, as far as its window goes.
pub fn is_open_to(host: &Host, accepts_revocation: bool) -> bool {
    opens(host.window, accepts_revocation)
}

pub(crate) fn opens(window: Option<Window>, accepts_revocation: bool) -> bool {
    match window {
        None => true,
        Some(Window::Open) => accepts_revocation,
        Some(Window::Closed) => false,
    }
}

/// The hosts a job should be steered to: windowed ones if it accepts them, else any.
pub fn preferred(hosts: &[Host], accepts_revocation: bool) -> Vec<&HostName> {
    let windowed: Vec<&HostName> = hosts
        .iter()
        .filter(|host| host.window == Some(Window::Open) && accepts_revocation)
        .map(|host| &host.name)
        .collect();
    if !windowed.is_empty() {
        return windowed;
    }
    hosts.iter().filter(|host| is_open_to(host, accepts_revocation)).map(|host| &host.name).collect()
}
