-- Attempts that had cards idle or underused, those with most of it first when ordered by wasted_card_hours, each with the reason.
with sums as (
    select attempt_key, min(org) as org, min(project) as project, min("user") as "user",
        case when count(distinct model) = 1 then min(model) end as model,
        sum(card_hours) as card_hours, sum(idle_card_hours) as idle, sum(underused_card_hours) as underused,
        sum(lost_card_hours) as lost, sum(unseen_card_hours) as unseen, sum(card_hours - unseen_card_hours) as seen,
        min(use_basis) as first_basis, max(use_basis) as last_basis
    from efficiency
    group by attempt_key
)
select attempt_key, org, project, "user", model, card_hours, idle + underused as wasted_card_hours,
    concat(
        concat_ws(' and ',
            case when idle > 0 then concat('idle ', cast(100 * idle / seen as decimal(5, 1)), ' %') end,
            case when underused > 0 then concat('underused ', cast(100 * underused / seen as decimal(5, 1)), ' %') end,
            case when lost > 0 then concat('lost ', cast(100 * lost / seen as decimal(5, 1)), ' %') end),
        ' of ', cast(seen as decimal(20, 1)), ' seen card-hours',
        case when first_basis = 'duty_cycle' and last_basis = 'duty_cycle' then ', by the duty cycle'
            when last_basis <> 'gpm' or first_basis <> last_basis then ', in part by the duty cycle' else '' end,
        case when unseen > 0 then concat('; ', cast(unseen as decimal(20, 1)), ' not seen') else '' end) as reason
from sums
where idle + underused > 0
