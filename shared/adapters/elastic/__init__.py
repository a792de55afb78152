"""The rendezvous of elastic runs in Azure Table Storage."""
