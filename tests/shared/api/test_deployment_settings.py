"""The settings that an administrator sees: the values in use, without secrets."""

from __future__ import annotations

from shared.api.deployment_settings import shown_settings
from shared.kernel.settings import SETTINGS, Settings

SECRET = "s3cr3t"
REQUIRED = {
    "AzureWebJobsStorage": f"AccountName=a;AccountKey={SECRET}",
    **dict.fromkeys(("AML_SUBSCRIPTION_ID", "AML_RESOURCE_GROUP", "AML_WORKSPACE"), "yard"),
}


def test_every_setting_has_its_value_in_use() -> None:
    """A setting shows its configured value, also under its earlier name, or else its default."""
    env = {**REQUIRED, "TRAINYARD_LEASE_MAX_HOURS": "3", "TRAINYARD_SWEEP_DRY_RUN": "true"}
    shown = {each.name: each for each in shown_settings(Settings.from_env(env).given)}
    assert list(shown) == list(SETTINGS)
    values = {name: (each.value, each.is_set) for name, each in shown.items()}
    assert values["TRAINYARD_LEASE_MAX_HOURS"] == ("3", True)
    assert values["TRAINYARD_SCALING_DRY_RUN"] == ("true", True)
    assert values["TRAINYARD_IDLE_GPU_MINUTES"] == ("15", False)
    assert values["TRAINYARD_RETENTION_SCHEDULE"] == ("0 40 3 * * *", False)
    assert values["TRAINYARD_ROUTES"][0].endswith("routes.yaml")
    assert values["TRAINYARD_SMTP_URL"] == ("", False)


def test_no_secret_is_shown() -> None:
    """Secret settings are hidden, and so are the user, password and signature in an address."""
    env = {
        **REQUIRED,
        "TRAINYARD_TOPIC_ENDPOINT": "https://topic.example.org/api",
        "TRAINYARD_TOPIC_KEY": SECRET,
        "TRAINYARD_SMTP_URL": f"smtps://user:{SECRET}@mail.example.org",
        "TRAINYARD_MAIL_FROM": "yard@example.org",
        "TRAINYARD_SIGNING_KEY": SECRET,
        "AML_CLIENT_KWARGS": f'{{"password": "{SECRET}"}}',
        "TRAINYARD_PRICES_URL": f"https://user:{SECRET}@prices.example.org/v1?sig={SECRET}",
    }
    settings = Settings.from_env(env)
    assert SECRET not in repr(settings.given).replace(env["TRAINYARD_PRICES_URL"], "")
    shown = {each.name: each for each in shown_settings(settings.given)}
    assert SECRET not in repr(shown)
    assert shown["TRAINYARD_PRICES_URL"].value == "https://prices.example.org/v1"
    assert shown["TRAINYARD_SIGNING_KEY"].is_set
    assert shown["TRAINYARD_SIGNING_KEY"].secret
