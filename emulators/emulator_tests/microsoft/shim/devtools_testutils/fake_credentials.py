"""Names imported by the tests' settings."""

STORAGE_ACCOUNT_FAKE_KEY = "unused"
