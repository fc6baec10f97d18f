//! Actions carried out in a real Slurm.

mod killed;
mod slurm_jobs;
mod slurm_limits;
mod stage;
