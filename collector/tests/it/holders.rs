//! Who holds a node's devices: fixture trees of `/proc`, and a real Slurm.

mod node;
mod odd_processes;
mod sessions;
mod slurm_files;
mod slurm_lab;
mod virtual_machines;
