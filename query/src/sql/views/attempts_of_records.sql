-- Every run of a job. No node has told of any that records don't know.
select attempt_key, cluster, job_id, attempt, org, project, "user", queue, class, labels, state,
    submitted_at, started_at, ended_at, failure_reason, memory_requested_mib, 'record' as known_by
from jobs
