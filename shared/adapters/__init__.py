"""Azure behind the ports: the only code of the app that uses the Azure SDKs.

Each SDK is imported where it is first needed, because the SDKs take most of a cold start.
"""
