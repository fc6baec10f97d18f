-- Runs that failed, and runs that a job needed because an earlier one of it hadn't done.
--
-- All card-hours of a failed run are failed_card_hours; lost_card_hours are those whose work is gone, which a checkpoint makes fewer.
with held as (
    select attempt_key, sum(card_hours) as card_hours, sum(lost_card_hours) as lost_card_hours
    from efficiency
    group by attempt_key
),
runs as (
    select attempts.*, card_hours, lost_card_hours,
        row_number() over (partition by attempts.cluster, job_id order by started_at, attempt, attempt_key) as run
    from attempts
    join held using (attempt_key)
)
select attempt_key, cluster, job_id, run, org, project, "user", queue, class, state, failure_reason, card_hours,
    case when state in ('failed', 'timeout', 'out_of_memory', 'node_fail') then card_hours else 0 end as failed_card_hours,
    case when run > 1 then card_hours else 0 end as retried_card_hours,
    lost_card_hours
from runs
where run > 1 or lost_card_hours > 0 or state in ('failed', 'timeout', 'out_of_memory', 'node_fail')
