-- Every change that ever arrived.
{{ config(materialized='incremental', incremental_strategy='append', options={'type': 'cow'}) }}

select id, fare, updated_at from {{ ref('changes') }}
