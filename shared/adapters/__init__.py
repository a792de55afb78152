"""Azure behind the ports: the only code of the app that knows the Azure SDKs.

The SDKs are imported where they are first needed, because they are most of a cold start.
"""
