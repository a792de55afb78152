"""The use cases. Each takes the System and a few plain values, may run twice, and may die between any two writes."""
