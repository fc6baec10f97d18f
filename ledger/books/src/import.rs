//! From a site's export to attempts: readers make records of any format, the mapping makes attempts of records.
//!
//! The parsers of single values ([`time`], [`duration`], [`tres`], [`node_list`], [`job_id`], [`slurm`]) know nothing of files;
//! [`map`] is the file that says which column is what; [`jobs`] puts them together for jobs, [`site`] for nodes, reservations and
//! outages.

mod ahead;
pub mod duration;
pub mod fields;
pub mod job_id;
pub mod jobs;
pub mod map;
pub mod mapping;
pub mod metrics;
pub mod mig_type;
pub mod names;
pub mod node_list;
pub mod readers;
pub mod record;
pub mod site;
pub mod slurm;
pub mod time;
pub mod tres;
pub mod when;
