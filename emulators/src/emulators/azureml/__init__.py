"""The Azure Machine Learning control plane on one machine: Azure Resource Manager over HTTPS, and jobs that really
run.

The unmodified `azure.ai.ml.MLClient` works with it. The modules:

    config, identity          the part's configuration; tokens for DefaultAzureCredential
    models, spec, sources, distribution, cluster_body, plan, environment
                              states, parsed bodies, the scheduler's decisions, a rank's variables: no I/O
    recipe, dockerfile, recipes, environments, installed, launchers, unused
                              the content of a job's environment, and building it with uv
    registries, registry_files, registry_folder
                              shared assets, read from their owner's files
    needs                     a job's needs on this machine, checked before the job is accepted
    store, workspace          the state across restarts, and the use cases that change it
    wire, *_routes, operations, control, server
                              bodies in the form of Microsoft's OpenAPI, and the routes that return them
    scheduler, attempt, site, run_logs
                              carry decisions out; one attempt runs a job on its nodes and logs its course
    processes, guard, mpi, ray_cluster
                              process groups of a rank, the guard that ends them after a kill, and two launchers
    blobs, places, web, data, logs, copies, registering
                              inputs, outputs and logs in the storage account, and outputs that become assets
    events, blobfront         status changes to Event Grid; TLS in front of the blobs for the SDK's datastore access
"""
