-- Every run of a job: those that records tell of, and those that only nodes saw.
select attempt_key, cluster, job_id, attempt, org, project, "user", queue, class, labels, state,
    submitted_at, started_at, ended_at, failure_reason, memory_requested_mib, 'record' as known_by
from jobs
union all
select attempt_key, cluster, job_id, attempt, org, project, "user", queue, class, labels, state,
    submitted_at, started_at, ended_at, failure_reason, memory_requested_mib, 'node' as known_by
from observed_jobs
