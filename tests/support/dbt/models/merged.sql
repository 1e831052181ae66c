-- One row for each ride; a correction that is older than the row changes nothing.
{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    partition_by='city',
    options={'type': 'mor', 'orderingFields': 'updated_at'}
) }}

select id, fare, updated_at, city from {{ ref('changes') }}
