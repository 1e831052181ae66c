-- The cities that have arrived are replaced, the others stay.
{{ config(
    materialized='incremental',
    incremental_strategy='insert_overwrite',
    partition_by='city',
    options={'type': 'cow', 'primaryKey': 'id'},
    unique_key='id'
) }}

select id, fare, city from {{ ref('changes') }} where updated_at > 0
