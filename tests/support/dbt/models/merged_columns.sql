-- Only the fare of a ride that is there changes; with what dbt makes of a WITH, and a look at the table itself.
{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    merge_update_columns=['fare'],
    options={'type': 'cow', 'hoodie.table.cdc.enabled': 'true'}
) }}

with newest as (
    select id, fare, updated_at from {{ ref('changes') }}
    {% if is_incremental() %}
    where updated_at > (select max(updated_at) from {{ this }})
    {% endif %}
)

select id, fare, updated_at from newest
