"""Change events of Debezium, from topics of Kafka."""
