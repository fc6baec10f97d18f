-- Where the held time of each attempt went, by model and month of UTC.
--
-- held = unseen + lost + idle + effective + underused. Efficiency is effective ÷ (held − unseen), and absent where less than half of the held time was seen.
-- A card-hour is 18,018,000 parts of a card × 3,600,000 ms.
with split as (
    select attempt_key, cluster, model, date_trunc('month', bucket_start) as utc_month,
        sum(card_time) as held, sum(effective) as effective, sum(underused) as underused, sum(idle) as idle,
        sum(lost) as lost, sum(unseen) as unseen, sum(energy_mj) as energy_mj,
        min(use_basis) as first_basis, max(use_basis) as last_basis
    from usage
    where state = 'held'
    group by attempt_key, cluster, model, date_trunc('month', bucket_start)
)
select attempt_key, split.cluster, org, project, "user", queue, class, state, split.model, utc_month,
    cast(held as decimal(38, 4)) / 64864800000000 as card_hours,
    cast(effective as decimal(38, 4)) / 64864800000000 as effective_card_hours,
    cast(underused as decimal(38, 4)) / 64864800000000 as underused_card_hours,
    cast(idle as decimal(38, 4)) / 64864800000000 as idle_card_hours,
    cast(lost as decimal(38, 4)) / 64864800000000 as lost_card_hours,
    cast(unseen as decimal(38, 4)) / 64864800000000 as unseen_card_hours,
    cast(held - unseen as decimal(38, 6)) / nullif(held, 0) as use_coverage,
    case when (held - unseen) * 100 >= held * 50 then cast(effective as decimal(38, 6)) / nullif(held - unseen, 0) end as efficiency,
    case when first_basis = last_basis then first_basis when first_basis is not null then 'mixed' end as use_basis,
    cast(energy_mj as decimal(38, 6)) / 3600000000 as energy_kwh
from split
left join attempts using (attempt_key)
