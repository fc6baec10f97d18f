//! The collector's parts together, over real sockets and files.

mod kubernetes;
