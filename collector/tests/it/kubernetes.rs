//! A Kubernetes node: a kubelet that speaks its own protocol over a socket, and an API server that lists and watches.

mod api_server;
mod certificates;
mod field_reports;
mod node;
mod outages;
mod real_lists;
mod server_outages;
mod sharing;
