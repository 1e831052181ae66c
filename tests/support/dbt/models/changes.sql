-- The source: what has arrived, twice a ride for one that was corrected.
{{ config(materialized='view') }}

select id, city, fare, updated_at
from values
  (1, 'oslo', 10.0, 1, 1), (2, 'rome', 20.0, 1, 1), (3, 'oslo', 30.0, 1, 1),
  (2, 'rome', 25.0, 2, 2), (4, 'bern', 40.0, 2, 2), (3, 'oslo', 5.0, 0, 2)
  as source (id, city, fare, updated_at, arrival)
where arrival = {{ var('arrived') }}
