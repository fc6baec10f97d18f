-- The memory of the devices that each attempt had for itself, beside the most that was ever taken of it.
--
-- Cards that others shared at the time are left out: their memory is taken by all of them together.
with capacity as (
    select device_uuid, max(memory_bytes) as memory_bytes from devices group by device_uuid
),
taken as (
    select h.attempt_key, h.device_uuid, max(s.mem_used_bytes) as most_bytes, avg(s.mem_used_bytes) as mean_bytes
    from holdings h
    join samples s on s.device_uuid = h.device_uuid and s.ts >= h.started_at and s.ts < h.ended_at
    where h.share_parts = 18018000 or h.device_uuid <> h.card_uuid
    group by h.attempt_key, h.device_uuid
),
sums as (
    select attempt_key, count(*) as devices, sum(memory_bytes) as memory_bytes, sum(most_bytes) as most_bytes,
        max(most_bytes) as most_of_one_bytes, min(memory_bytes) as least_device_bytes, sum(mean_bytes) as mean_bytes
    from taken
    join capacity using (device_uuid)
    where most_bytes is not null and memory_bytes > 0
    group by attempt_key
)
select attempt_key, cluster, org, project, "user", queue, class, state, memory_requested_mib, devices,
    cast(memory_bytes as decimal(38, 4)) / 1073741824 as device_memory_gib,
    cast(most_bytes as decimal(38, 4)) / 1073741824 as most_used_gib,
    cast(mean_bytes as decimal(38, 4)) / 1073741824 as mean_used_gib,
    cast(most_bytes as decimal(38, 6)) / memory_bytes as most_used_of_device,
    case when 2 * most_of_one_bytes <= least_device_bytes
        then 'at most half of any device was taken: a smaller card, or a slice, would have had the room' end as advice
from sums
left join attempts using (attempt_key)
