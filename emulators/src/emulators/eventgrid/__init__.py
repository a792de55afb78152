"""A stand-in for Azure Event Grid: blob events, custom topics, filters, delivery, retry, dead-letter.

    python -m emulators.eventgrid --config FILE.json

    accesslog, source   events from the storage's access log          server     topics' endpoints and control
    schema, filters     shape and matching of events (pure)           broker     routing; counts; the barrier
    delivery, lane      retry rules (pure); one subscription          store      the state across restarts
    destinations        storage queue, webhook, dead-letter blob      faults     knobs for tests
    storage             the requests to the account                   config     the file, read once

Delivery is at least once and unordered, as in Azure. Sources of the rules: Microsoft's pages "Event Grid message
delivery and retry", "Event filtering" and "Azure Blob Storage as Event Grid source".
"""
