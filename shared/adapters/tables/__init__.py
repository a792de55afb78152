"""Records in Azure Table Storage, behind the ports of the nouns."""
