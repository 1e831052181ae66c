-- Made anew by each run.
{{ config(materialized='table', options={'primaryKey': 'city'}, unique_key='city') }}

select city, count(*) as rides, sum(fare) as fares from {{ ref('merged') }} group by city
