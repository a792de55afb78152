"""Names that the tests' settings import."""

STORAGE_ACCOUNT_FAKE_KEY = "unused"
