"""Jobs: from what was asked to exactly what Azure ML is sent."""
