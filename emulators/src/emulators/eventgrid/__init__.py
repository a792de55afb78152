"""A stand-in for Azure Event Grid: blob events, custom topics, filters, delivery, retry, dead-letter.

    python -m emulators.eventgrid --config FILE.json

    accesslog, source   what was written there, as events            server     topics' endpoints and control
    schema, filters     the shape of events, who wants them (pure)    broker     who gets what; counts; the barrier
    delivery, lane      when to try again (pure); one subscription    store      what must survive a restart
    destinations        storage queue, webhook, dead-letter blob      faults     knobs for tests
    storage             the requests to the account                   config     the file, read once

Delivery is at least once and unordered, as in Azure. Sources of the rules: Microsoft's pages "Event Grid message
delivery and retry", "Event filtering" and "Azure Blob Storage as Event Grid source".
"""
