"""What leaves for others: lifecycle events, notices, and questions about prices."""
